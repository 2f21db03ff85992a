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
	"runtime"
	"strings"
	"sync"
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

func (o *Options) want(count int, all bool) C.struct_want {
	return C.struct_want{count: C.size_t(count), all: C.bool(all), ttl_ms: ttlMillis(o.TTL), wait_ms: waitMillis(o.Wait),
		no_keeper: C.bool(o.NoKeeper), spread: C.bool(o.Spread)}
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

// text is the string as C knows it, NULL for an empty one. A NUL becomes another control character: a name must not
// become another name.
func text(s string) *C.char {
	if s == "" {
		return nil
	}
	return (*C.char)(unsafe.Pointer(&append([]byte(strings.ReplaceAll(s, "\x00", "\x01")), 0)[0]))
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

// ttlMillis of a negative ttl is one that the library refuses.
func ttlMillis(d time.Duration) C.uint32_t {
	if ms := millis(d); ms >= 0 && ms < math.MaxUint32 {
		return C.uint32_t(ms)
	}
	return math.MaxUint32
}

// A Store is where locks live.
type Store struct {
	mu   sync.RWMutex // held for reading by every call, for writing to close
	hf   *C.struct_hf_store
	url  string
	warn func(string)
	open context.Context // ends when it is closed
	end  context.CancelFunc
}

// cancellable runs call with a descriptor that is set when ctx or the store end: what a wait needs.
func (s *Store) cancellable(ctx context.Context, call func(fd C.int) error) error {
	fd := C.new_event()
	if fd < 0 {
		return &Error{Status: NoMemory, Text: "no descriptor can be had to cancel a wait by"}
	}
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-ctx.Done():
		case <-s.open.Done():
		case <-ended:
			return
		}
		C.eventfd_write(fd, 1)
	}()
	defer func() {
		close(ended)
		<-left
		C.close(fd)
	}()
	err := call(fd)
	if e, ok := err.(*Error); ok && e.Status == Cancelled {
		e.cause = ctx.Err()
	}
	return err
}

// Open opens the store that url names; "" is the embedded store.
func Open(ctx context.Context, url string, options OpenOptions) (*Store, error) {
	if strings.IndexByte(url, 0) >= 0 {
		return nil, invalid("a URL has no control characters")
	}
	if err := mismatch(); err != nil {
		return nil, err
	}
	store, e := &Store{warn: options.Warning}, new(C.struct_hf_error)
	store.open, store.end = context.WithCancel(context.Background())
	err := store.cancellable(ctx, func(fd C.int) error {
		how := C.struct_hf_open_options{size: C.sizeof_struct_hf_open_options, wait_ms: waitMillis(options.Wait), cancel_fd: fd}
		return store.failure(C.hf_open_waiting(text(url), &how, &store.hf, e), e, 0)
	})
	if err != nil {
		return nil, err
	}
	store.url = C.GoString(C.hf_store_url(store.hf))
	runtime.SetFinalizer(store, func(s *Store) { go s.Close() })
	return store, nil
}

// URL is what was opened, without its password.
func (s *Store) URL() string { return s.url }

func (s *Store) String() string { return "holdfast.Store " + s.url }

// Close ends the waits in this store, releases what is held, and closes it.
func (s *Store) Close() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	C.hf_close(s.hf)
	s.hf = nil
	runtime.SetFinalizer(s, nil)
}

// enter begins a call, unless the store is closed; s.mu.RUnlock ends it.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.hf != nil {
		return nil
	}
	s.mu.RUnlock()
	return invalid("store " + s.url + " is closed")
}

func (s *Store) use(call func(e *C.struct_hf_error) C.enum_hf_status) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	e := new(C.struct_hf_error)
	return s.failure(call(e), e, 0)
}

func (s *Store) try(names, label string, want C.struct_want, fd C.int, taken *C.struct_taken, e *C.struct_hf_error) error {
	if err := s.enter(); err != nil {
		return err
	}
	want.cancel_fd = fd
	status := C.take(C.uintptr_t(uintptr(unsafe.Pointer(s.hf))), names, label, want, taken, e)
	s.mu.RUnlock()
	return s.failure(status, e, 0)
}

// take takes what is wanted of the names, a line each. Ending ctx, or the store, ends the wait.
func (s *Store) take(ctx context.Context, names, label string, want C.struct_want, taken *C.struct_taken,
	e *C.struct_hf_error) error {
	if want.wait_ms == 0 && ctx.Err() == nil {
		return s.try(names, label, want, 0, taken, e)
	}
	return s.cancellable(ctx, func(fd C.int) error { return s.try(names, label, want, fd, taken, e) })
}

// Lock takes the lock. Ending ctx ends the wait and leaves the queue.
func (s *Store) Lock(ctx context.Context, name string, options Options) (*Lease, error) {
	return s.first(ctx, name, 1, &options)
}

// first takes one of the names, a line each.
func (s *Store) first(ctx context.Context, names string, count int, options *Options) (*Lease, error) {
	h := holds.Get().(*hold)
	if err := s.take(ctx, names, options.Label, options.want(count, false), &h.taken, &h.err); err != nil {
		holds.Put(h)
		return nil, err
	}
	if count > 1 {
		names = strings.Split(names, "\n")[h.taken.which]
	}
	return &Lease{hold: h, store: s, name: names, token: uint64(h.taken.token)}, nil
}

// With holds the lock while body runs; its context ends when the lease is lost. It returns a Lost error if body
// succeeded and the lease was lost, and body's own error if it failed.
func (s *Store) With(ctx context.Context, name string, options Options, body func(context.Context, *Lease) error) error {
	lease, err := s.Lock(ctx, name, options)
	return scope(ctx, lease, err, body)
}

func scope[L interface {
	Context(context.Context) context.Context
	Release() error
}](ctx context.Context, held L, err error, body func(context.Context, L) error) error {
	if err != nil {
		return err
	}
	defer held.Release() // if body panics
	if err = body(held.Context(ctx), held); err != nil {
		return err
	}
	return held.Release()
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

func (s *Store) look(leader bool, name, prefix string, each func(*C.struct_hf_record)) error {
	var rows *C.struct_row
	err := s.use(func(e *C.struct_hf_error) C.enum_hf_status {
		return C.look(s.hf, C.bool(leader), text(name), text(prefix), &rows, e)
	})
	for row := rows; row != nil && err == nil; row = row.next {
		each(&row.record)
	}
	C.free_rows(rows)
	return err
}

// Leader tells who leads, or nil.
func (s *Store) Leader(name string) (leader *Leader, err error) {
	err = s.look(true, name, "", func(r *C.struct_hf_record) {
		leader = &Leader{uint64(r.token), C.GoString(r.key), string(C.GoBytes(r.value, C.int(r.value_len))),
			time.Duration(r.written_ms) * time.Millisecond, time.Duration(r.until_ms) * time.Millisecond}
	})
	return leader, err
}

// Records are those of the lock whose keys start with prefix.
func (s *Store) Records(name, prefix string) (found []Record, err error) {
	err = s.look(false, name, prefix, func(r *C.struct_hf_record) {
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
	for _, record := range found {
		if record.Key == key {
			return &record, err
		}
	}
	return nil, err
}

// Break revokes the hold with that token: it is no longer renewed, and its holder hears of it. now ends it at once, and
// only a fence keeps the late one out. It returns a Lost error if that hold is not the present one.
func (s *Store) Break(name string, token uint64, reason string, now bool) error {
	how := C.struct_hf_break_options{size: C.sizeof_struct_hf_break_options, reason: text(reason), now: C.bool(now)}
	return s.use(func(e *C.struct_hf_error) C.enum_hf_status {
		return C.break_hold(s.hf, text(name), C.uint64_t(token), how, e)
	})
}
