package holdfast

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A Lease is a held lock. Release gives it back; one that nobody refers to any more is given back by the garbage
// collector.
type Lease struct {
	hold       *hold
	store      *Store
	name       string
	token, use uint64 // use: of the hold, which may be another lease's once this one was released
}

// A hold is what is to be given back, and how the end is heard of. It is used for one lease after the other: a finalizer
// for each would cost as much as a call of the library.
type hold struct {
	use      atomic.Uint64 // counts its leases
	calls    atomic.Int32  // that are under way
	taken    C.struct_taken
	err      cError
	names    [C.HF_NAME_MAX + 1]byte // as C knows them: that nothing be allocated
	label    [C.HF_LABEL_MAX + 1]byte
	loss     C.enum_hf_loss
	borrowed bool // the library gives it back
	watched  sync.Once
	watch    *os.File
	over     chan struct{} // closed by whoever waits for the end; that does not keep the lease from being collected
}

var holds = sync.Pool{New: func() any {
	h := &hold{}
	runtime.SetFinalizer(h, func(h *hold) { go h.give() })
	return h
}}

// give ends the hold; it may be used for another lease then.
func (h *hold) give() (status cStatus, err *cError, loss C.enum_hf_loss) {
	if h.watch != nil {
		_ = h.watch.Close()
		<-h.over
	}
	if !h.borrowed {
		status = C.release(h.taken.lease, &h.loss, &h.err)
	}
	h.taken.lease, h.borrowed, h.watch, h.over, h.watched = 0, false, nil, nil, sync.Once{}
	return status, &h.err, h.loss
}

func (h *hold) lease(s *Store, name string, taken C.struct_taken) *Lease {
	h.taken, h.err.text[0] = taken, 0
	return &Lease{h, s, name, uint64(taken.token), h.use.Load()}
}

// Name is that of the lock.
func (l *Lease) Name() string { return l.name }

// Token is the fencing token, which only ever rises: give it to whatever you write to.
func (l *Lease) Token() uint64 { return l.token }

func (l *Lease) String() string { return fmt.Sprintf("holdfast.Lease %q token=%d", l.name, l.token) }

// with runs call, unless the lease was released.
func (l *Lease) with(call func(hf *C.struct_hf_lease, e *cError) cStatus, texts ...string) error {
	if err := clean(texts); err != nil {
		return err
	}
	h := l.hold
	if h.use.Load() == l.use { // else it is not counted: another lease's Release would wait for it
		h.calls.Add(1) // before the other look: Release looks the other way round
		defer h.calls.Add(-1)
	}
	if h.use.Load() != l.use {
		return invalid(fmt.Sprintf("lock %q in store %s: this lease was released", l.name, l.store.url))
	}
	e, hf := new(cError), *(**C.struct_hf_lease)(unsafe.Pointer(&h.taken.lease))
	return l.store.failure(call(hf, e), e, C.hf_lease_loss(hf))
}

// Remaining is the validity left; 0 once it is lost or released.
func (l *Lease) Remaining() (left time.Duration) {
	_ = l.with(func(hf *C.struct_hf_lease, _ *cError) cStatus {
		if ms := C.hf_lease_remaining_ms(hf); ms > 0 {
			left = duration(ms)
		}
		return C.HF_OK
	})
	return left
}

// Check returns a Lost error once nothing remains: the line to put before a write. It asks no server.
func (l *Lease) Check() error {
	return l.with(func(hf *C.struct_hf_lease, e *cError) cStatus {
		for C.hf_lease_remaining_ms(hf) <= 0 {
			if C.hf_lease_loss(hf) != C.HF_LOSS_NONE {
				return C.hf_renew(hf, 0, e) // of what is lost, it only says why
			}
			time.Sleep(time.Millisecond) // less than that is left
		}
		return C.HF_OK
	})
}

// Renew extends the lease now, to ttl (0: the ttl it has); the keeper does so by itself.
func (l *Lease) Renew(ttl time.Duration) error {
	return l.with(func(hf *C.struct_hf_lease, e *cError) cStatus {
		return C.hf_renew(hf, ttlMillis(ttl), e)
	})
}

// Put writes a record of this lock, kept for that long (0: for ever).
func (l *Lease) Put(key string, value []byte, keep time.Duration) error {
	data := append(value[:len(value):len(value)], 0) // there is a first byte
	return l.with(func(hf *C.struct_hf_lease, e *cError) cStatus {
		return C.hf_record_put(hf, text(key), unsafe.Pointer(&data[0]), C.size_t(len(value)), millis(keep), e)
	}, key)
}

// Done is closed when the lease is lost, or released.
func (l *Lease) Done() <-chan struct{} {
	over := make(chan struct{})
	if l.with(func(hf *C.struct_hf_lease, _ *cError) cStatus {
		l.hold.watched.Do(func() { l.hold.listen(C.hf_lease_fd(hf)) })
		over = l.hold.over
		return C.HF_OK
	}) != nil {
		close(over)
	}
	return over
}

func (h *hold) listen(fd C.int) {
	own, _ := syscall.Dup(int(fd)) // -1 if none can be had: a loss would not be heard of, so it is over at once
	syscall.CloseOnExec(own)
	h.watch, h.over = os.NewFile(uintptr(own), "lease"), make(chan struct{}) // non-blocking, so on Go's own poller
	go func(watch *os.File, over chan struct{}) {
		if conn, err := watch.SyscallConn(); err == nil {
			_ = conn.Read(func(fd uintptr) bool { return C.poll(&C.struct_pollfd{fd: C.int(fd), events: C.POLLIN}, 1, 0) > 0 })
		}
		close(over)
	}(h.watch, h.over)
}

// Context ends when parent does, when the lease is lost, and when it is released.
func (l *Lease) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	done := l.Done()
	go func() {
		select {
		case <-done:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx
}

// Release gives the lock back. It returns a Lost error if it was not held to the end; again, it does nothing.
func (l *Lease) Release() error {
	h := l.hold
	if !h.use.CompareAndSwap(l.use, l.use+1) {
		return nil
	}
	for h.calls.Load() > 0 { // they began before
		time.Sleep(time.Millisecond)
	}
	defer holds.Put(h)
	return l.store.failure(h.give())
}

// Leases are those of All, in the order of the names. The loss of one is the loss of all.
type Leases []*Lease

// Remaining is that of the lease that ends first.
func (all Leases) Remaining() (least time.Duration) {
	for i, lease := range all {
		if left := lease.Remaining(); i == 0 || left < least {
			least = left
		}
	}
	return least
}

// Check returns a Lost error once nothing remains of one of them: the line to put before a write.
func (all Leases) Check() error {
	for _, lease := range all {
		if err := lease.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Context ends when parent does, and when one of them is lost or released.
func (all Leases) Context(parent context.Context) context.Context {
	for _, lease := range all {
		parent = lease.Context(parent)
	}
	return parent
}

// Release gives them back, in the reverse order of their names. It returns a Lost error if one was not held to the end,
// else the first other error.
func (all Leases) Release() (first error) {
	order := append(Leases(nil), all...)
	sort.Slice(order, func(i, j int) bool { return order[i].name > order[j].name })
	for _, lease := range order {
		if err := lease.Release(); first == nil || err != nil && err.(*Error).Status == Lost {
			first = err
		}
	}
	return first
}
