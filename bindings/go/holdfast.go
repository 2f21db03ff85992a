// Package holdfast is a distributed lock with fencing tokens, by libholdfast.
//
//	store, err := holdfast.Open(ctx, "file:/var/lib/jobs", holdfast.OpenOptions{})
//	...
//	lease, err := store.Lock(ctx, "nightly", holdfast.Options{TTL: 30 * time.Second, Wait: 10 * time.Second})
//	...
//	defer lease.Release()
//
// Stores and leases may be used by several goroutines at once.
package holdfast

/*
#cgo pkg-config: holdfast
#include "shim.h"
*/
import "C"

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Forever is a Wait without limit. Whatever is less, as what time.Until says of a deadline that has passed, is none.
const Forever = time.Duration(-1)

// OpenOptions say how a store is opened.
type OpenOptions struct {
	Wait    time.Duration        // for a store that is down
	Warning func(warning string) // hears what Open and Put are warned of; may be nil
}

// Options say how a lock is taken.
type Options struct {
	TTL      time.Duration // 0: 30s, or less where the store says so
	Wait     time.Duration // 0: one try; Forever: no limit
	Label    string        // what people see; "": host/pid/program
	NoKeeper bool          // nobody renews it but you
	Address  string        // of Elect: where the leader is to be found
	Spread   bool          // of Any: the names are tried from a random one on
}

// Version is that of the library that runs.
func Version() string { return C.GoString(C.hf_version()) }

// mismatch is one sentence about a library that does not go with this package.
func mismatch() error {
	var major, minor int
	_, _ = fmt.Sscanf(Version(), "%d.%d", &major, &minor)
	if major == C.HF_VERSION_MAJOR && minor >= C.HF_VERSION_MINOR {
		return nil
	}
	return &Error{Status: Unsupported, Text: fmt.Sprintf("holdfast: this program needs libholdfast %d.%d or a later "+
		"one of the same major version, and libholdfast.so.0 is %s", C.HF_VERSION_MAJOR, C.HF_VERSION_MINOR, Version())}
}

// A C string ends at a NUL: a name with one must not become another name.
func plain(text, what string) (*C.char, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, invalid(what + " has no control characters")
	}
	return (*C.char)(unsafe.Pointer(&append([]byte(text), 0)[0])), nil
}

func millis(d time.Duration) C.int64_t {
	if d < 0 {
		return -1
	}
	return C.int64_t((d + time.Millisecond - 1) / time.Millisecond)
}

func waitMillis(d time.Duration) C.int64_t {
	if d < Forever {
		return 0
	}
	return millis(d)
}

func ttlMillis(d time.Duration) (C.uint32_t, error) {
	if d < 0 {
		return 0, invalid("a ttl is not negative")
	}
	if ms := millis(d); ms < math.MaxUint32 {
		return C.uint32_t(ms), nil
	}
	return math.MaxUint32, nil
}

// A Store is where locks live.
type Store struct {
	mu      sync.RWMutex // held for reading by every call, for writing to close
	hf      *C.struct_hf_store
	url     string
	warn    func(string)
	closing chan struct{}
	once    sync.Once
}

// cancellable runs call with a descriptor that is set when ctx or the store end. It is what a wait needs;
// without one, or with nothing that could end it, there is none.
func cancellable(ctx context.Context, closing <-chan struct{}, call func(fd C.int) error) error {
	fd := C.new_event()
	if fd < 0 {
		return &Error{Status: NoMemory, Text: "no descriptor can be had to cancel a wait by"}
	}
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-ctx.Done():
		case <-closing:
		case <-ended:
			return
		}
		C.eventfd_write(fd, 1)
	}()
	err := call(fd)
	close(ended)
	<-left
	C.close(fd)
	if e, ok := err.(*Error); ok && e.Status == Cancelled {
		e.cause = ctx.Err()
	}
	return err
}

// Open opens the store that url names; "" is the embedded store.
func Open(ctx context.Context, url string, options OpenOptions) (*Store, error) {
	name, err := plain(url, "a URL")
	if err != nil {
		return nil, err
	}
	if err = mismatch(); err != nil {
		return nil, err
	}
	store := &Store{warn: options.Warning, closing: make(chan struct{})}
	var e C.struct_hf_error
	err = cancellable(ctx, nil, func(fd C.int) error {
		return failure(C.open_store(name, waitMillis(options.Wait), fd, &store.hf, &e), &e, 0)
	})
	if err != nil {
		return nil, err
	}
	store.warning(&e)
	store.url = C.GoString(C.hf_store_url(store.hf))
	runtime.SetFinalizer(store, func(s *Store) { go s.Close() })
	return store, nil
}

// warning tells what the library says although the call succeeded.
func (s *Store) warning(e *C.struct_hf_error) {
	if s.warn != nil && e.text[0] != 0 {
		s.warn(C.GoString(&e.text[0]))
	}
}

// URL is what was opened, without its password.
func (s *Store) URL() string { return s.url }

func (s *Store) String() string { return "holdfast.Store " + s.url }

// Close ends the waits in this store, releases what is held, and closes it.
func (s *Store) Close() {
	s.once.Do(func() { close(s.closing) })
	s.mu.Lock()
	defer s.mu.Unlock()
	C.hf_close(s.hf)
	s.hf = nil
	runtime.SetFinalizer(s, nil)
}

// use runs call, unless the store is closed, with the strings as C knows them.
func (s *Store) use(call func(e *C.struct_hf_error) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.hf == nil {
		return invalid("store " + s.url + " is closed")
	}
	return call(new(C.struct_hf_error))
}

// Lock takes the lock. Ending ctx ends the wait and leaves the queue.
func (s *Store) Lock(ctx context.Context, name string, options Options) (*Lease, error) {
	return s.Any(ctx, []string{name}, options)
}

// With holds the lock while body runs; its context ends when the lease is lost. It returns a Lost error if body
// succeeded and the lease was lost, and body's own error if it failed.
func (s *Store) With(ctx context.Context, name string, options Options, body func(context.Context, *Lease) error) error {
	lease, err := s.Lock(ctx, name, options)
	if err != nil {
		return err
	}
	defer lease.Release() // if body panics
	if err = body(lease.Context(ctx), lease); err != nil {
		return err
	}
	return lease.Release()
}

// Elect stands for one term as leader; the token is the term. options.Address is told to those who ask Leader.
func (s *Store) Elect(ctx context.Context, name string, options Options) (*Lease, error) {
	if options.Wait == 0 {
		options.Wait = Forever
	}
	lease, err := s.Lock(ctx, name, options)
	if err != nil || options.Address == "" {
		return lease, err
	}
	if err = lease.Put("leader", []byte(options.Address), 0); err != nil {
		_ = lease.Release()
		return nil, err
	}
	return lease, nil
}

// A Leader is who leads, as a reader saw it a moment ago. Below 0: not known.
type Leader struct {
	Term           uint64
	Label, Address string
	Age, Remaining time.Duration
}

// A Record is what a holder left behind beside its lock.
type Record struct {
	Key            string
	Value          []byte
	Token, Number  uint64
	Written, Until time.Time // by the store's clock; Until is zero for ever
}

func (s *Store) rows(name string, what func(name *C.char, rows **C.struct_row, e *C.struct_hf_error) C.enum_hf_status,
	each func(*C.struct_hf_record)) error {
	cname, err := plain(name, "a lock name")
	if err != nil {
		return err
	}
	var rows *C.struct_row
	err = s.use(func(e *C.struct_hf_error) error { return failure(what(cname, &rows, e), e, 0) })
	for row := rows; row != nil && err == nil; row = row.next {
		each(&row.record)
	}
	C.free_rows(rows)
	return err
}

// Leader tells who leads, or nil.
func (s *Store) Leader(name string) (leader *Leader, err error) {
	err = s.rows(name, func(cname *C.char, rows **C.struct_row, e *C.struct_hf_error) C.enum_hf_status {
		return C.leader(s.hf, cname, rows, e)
	}, func(r *C.struct_hf_record) {
		leader = &Leader{uint64(r.token), C.GoString(r.key), string(C.GoBytes(r.value, C.int(r.value_len))),
			time.Duration(r.written_ms) * time.Millisecond, time.Duration(r.until_ms) * time.Millisecond}
	})
	return leader, err
}

// Records are those of the lock whose keys start with prefix.
func (s *Store) Records(name, prefix string) (found []Record, err error) {
	cprefix, err := plain(prefix, "a key")
	if err != nil {
		return nil, err
	}
	err = s.rows(name, func(cname *C.char, rows **C.struct_row, e *C.struct_hf_error) C.enum_hf_status {
		return C.records(s.hf, cname, cprefix, rows, e)
	}, func(r *C.struct_hf_record) {
		record := Record{C.GoString(r.key), C.GoBytes(r.value, C.int(r.value_len)), uint64(r.token), uint64(r.number),
			time.UnixMilli(int64(r.written_ms)), time.Time{}}
		if r.until_ms != 0 {
			record.Until = time.UnixMilli(int64(r.until_ms))
		}
		found = append(found, record)
	})
	return found, err
}

// Get is the record with that key, or nil.
func (s *Store) Get(name, key string) (*Record, error) {
	found, err := s.Records(name, key)
	for i := range found {
		if found[i].Key == key {
			return &found[i], err
		}
	}
	return nil, err
}

// Break revokes the hold with that token: it is no longer renewed, and its holder hears of it. now ends it at once, and
// only a fence keeps the late one out. It returns a Lost error if that hold is not the present one.
func (s *Store) Break(name string, token uint64, reason string, now bool) error {
	cname, err := plain(name, "a lock name")
	if err != nil {
		return err
	}
	why, err := plain(reason, "a reason")
	if err != nil {
		return err
	}
	return s.use(func(e *C.struct_hf_error) error {
		return failure(C.break_hold(s.hf, cname, C.uint64_t(token), why, C.bool(now), e), e, 0)
	})
}

// A Lease is a held lock. Release gives it back; one that nobody refers to any more is given back by the garbage
// collector.
type Lease struct {
	mu      sync.RWMutex // held for reading by every call, for writing to release
	hf      *C.struct_hf_lease
	store   *Store
	name    string
	token   uint64
	watched sync.Once
	watch   *os.File
	end     *end // not part of it: who waits for the end does not keep the lease from being collected
}

// An end comes once.
type end struct {
	once sync.Once
	over chan struct{}
}

func (e *end) come() { e.once.Do(func() { close(e.over) }) }

// Name is that of the lock.
func (l *Lease) Name() string { return l.name }

// Token is the fencing token, which only ever rises: give it to whatever you write to.
func (l *Lease) Token() uint64 { return l.token }

func (l *Lease) String() string { return fmt.Sprintf("holdfast.Lease %q token=%d", l.name, l.token) }

func (l *Lease) use(call func(e *C.struct_hf_error) error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.hf == nil {
		return invalid(fmt.Sprintf("lock %q in store %s: this lease was released", l.name, l.store.url))
	}
	return call(new(C.struct_hf_error))
}

// Remaining is the validity left; 0 once it is lost or released.
func (l *Lease) Remaining() (left time.Duration) {
	_ = l.use(func(*C.struct_hf_error) error {
		if ms := C.hf_lease_remaining_ms(l.hf); ms > 0 {
			left = time.Duration(ms) * time.Millisecond
		}
		return nil
	})
	return left
}

// Check returns a Lost error once nothing remains: the line to put before a write. It asks no server.
func (l *Lease) Check() error {
	return l.use(func(e *C.struct_hf_error) error {
		for C.hf_lease_remaining_ms(l.hf) <= 0 {
			if loss := C.hf_lease_loss(l.hf); loss != C.HF_LOSS_NONE {
				return failure(C.hf_renew(l.hf, 0, e), e, loss) // of what is lost, it only says why
			}
			time.Sleep(time.Millisecond) // less than that is left
		}
		return nil
	})
}

// Renew extends the lease now, to ttl (0: the ttl it has); the keeper does so by itself.
func (l *Lease) Renew(ttl time.Duration) error {
	ms, err := ttlMillis(ttl)
	if err != nil {
		return err
	}
	return l.use(func(e *C.struct_hf_error) error {
		return failure(C.hf_renew(l.hf, ms, e), e, C.hf_lease_loss(l.hf))
	})
}

// Put writes a record of this lock, kept for that long (0: for ever).
func (l *Lease) Put(key string, value []byte, keep time.Duration) error {
	ckey, err := plain(key, "a key")
	if err != nil {
		return err
	}
	data := append(value[:len(value):len(value)], 0)
	return l.use(func(e *C.struct_hf_error) error {
		status := C.hf_record_put(l.hf, ckey, unsafe.Pointer(&data[0]), C.size_t(len(value)), millis(keep), e)
		if status == C.HF_OK {
			l.store.warning(e)
		}
		return failure(status, e, C.hf_lease_loss(l.hf))
	})
}

// Done is closed when the lease is lost, or released.
func (l *Lease) Done() <-chan struct{} {
	l.watched.Do(func() {
		_ = l.use(func(*C.struct_hf_error) error {
			fd, err := syscall.Dup(int(C.hf_lease_fd(l.hf)))
			if err != nil {
				l.end.come() // a loss would not be heard of
				return err
			}
			syscall.CloseOnExec(fd)
			l.watch = os.NewFile(uintptr(fd), "lease") // non-blocking, so on Go's own poller
			if conn, err := l.watch.SyscallConn(); err == nil {
				go func(end *end) {
					_ = conn.Read(func(fd uintptr) bool { return C.is_readable(C.int(fd)) != 0 })
					end.come()
				}(l.end)
			}
			return nil
		})
	})
	return l.end.over
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hf == nil {
		return nil
	}
	runtime.SetFinalizer(l, nil)
	if l.watch != nil {
		_ = l.watch.Close()
	}
	l.end.come()
	var e C.struct_hf_error
	given := C.release(l.hf, &e)
	l.hf = nil
	return failure(given.status, &e, given.loss)
}
