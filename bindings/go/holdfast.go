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
	"runtime"
	"runtime/cgo"
	"strings"
	"sync"
	"time"
	"unsafe"
)

type cStatus = C.enum_hf_status
type cError = C.struct_hf_error

// A Status is what the library answers, one for each kind of failure:
// errors.Is(err, holdfast.Busy). An *Error tells more.
type Status int

// The statuses that are failures; holdfast.h says when each is answered.
const (
	Busy Status = iota + 1
	Lost
	Stale
	Cancelled
	Unknown
	Unreachable
	Quarantine
	Denied
	Invalid
	Unsupported
	Corrupt
	NoMemory
)

func (s Status) Error() string { return C.GoString(C.hf_status_text(cStatus(s))) }

// A Reason is why a lease was lost.
type Reason string

// The reasons, in the order of enum hf_loss.
const (
	Expired          Reason = "expired"
	Taken            Reason = "taken"
	Broken           Reason = "broken"
	StoreUnreachable Reason = "unreachable"
	Forgotten        Reason = "forgotten"
	Closed           Reason = "closed"
)

var reasons = [...]Reason{"", Expired, Taken, Broken, StoreUnreachable, Forgotten, Closed}

// An Error is a failure, with the library's text.
type Error struct {
	Status     Status
	Text       string
	RetryAfter time.Duration // with Quarantine: when the store opens
	Reason     Reason        // with Lost; "" if only the release found out
	cause      error         // with Cancelled: what ended the context
}

func (e *Error) Error() string { return e.Text }

// Is makes errors.Is(err, holdfast.Busy) true for the error's own status.
func (e *Error) Is(target error) bool { return target == error(e.Status) }

// Unwrap is the context's error, with Cancelled.
func (e *Error) Unwrap() error { return e.cause }

// failure is the error of what the library answered; a warning is told.
func (s *Store) failure(status cStatus, err *cError, loss C.enum_hf_loss) error {
	if status == C.HF_OK {
		if err.text[0] != 0 && s.warn != nil {
			s.warn(C.GoString(&err.text[0]))
		}
		return nil
	}
	e := &Error{Status: Status(status), Text: C.GoString(&err.text[0]), RetryAfter: duration(err.retry_after_ms)}
	if e.Status == Lost && int(loss) < len(reasons) {
		e.Reason = reasons[loss]
	}
	return e
}

func invalid(text string) error { return &Error{Status: Invalid, Text: text} }

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

// text is the string as C knows it, NULL for an empty one, in buffer if it fits; one with a NUL is refused before.
func text(s string, buffer ...byte) *C.char {
	if s == "" {
		return nil
	}
	return (*C.char)(unsafe.Pointer(&append(append(buffer, s...), 0)[0]))
}

// clean refuses what would be another text in C, where it would end at its NUL.
func clean(texts []string) error {
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return invalid("a name, label or other text has a NUL byte; control characters are not allowed")
		}
	}
	return nil
}

func duration(ms C.int64_t) time.Duration { return time.Duration(ms) * time.Millisecond }

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
	if ms := millis(d); ms >= 0 && ms < 1<<32-1 {
		return C.uint32_t(ms)
	}
	return 1<<32 - 1
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
	fd := C.int(0)
	for fd == 0 { // which means none to the library: whoever closed stdin may be given it here
		fd = C.eventfd(0, C.EFD_CLOEXEC|C.EFD_NONBLOCK)
	}
	if fd < 0 {
		return &Error{Status: NoMemory, Text: "no descriptor can be had to cancel a wait by"}
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ctx.Done():
		case <-s.open.Done():
		case <-ended:
		}
		C.eventfd_write(fd, 1)
		<-ended
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
	for _, err := range []error{clean([]string{url}), mismatch()} {
		if err != nil {
			return nil, err
		}
	}
	store, e := &Store{warn: options.Warning}, new(cError)
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
}

// use runs call, which is given texts, unless the store is closed.
func (s *Store) use(e *cError, call func(e *cError) cStatus, texts ...string) error {
	if err := clean(texts); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.hf == nil {
		return invalid("store " + s.url + " is closed")
	}
	return s.failure(call(e), e, 0)
}

// take takes one of the names, or all. Ending ctx, or the store, ends the wait.
func (s *Store) take(ctx context.Context, names []string, o *Options, all bool, taken *C.struct_taken, h *hold) error {
	lines := strings.Join(names, "\n")
	try := func(fd C.int) error {
		want := C.struct_want{count: C.size_t(len(names)), all: C.bool(all), no_keeper: C.bool(o.NoKeeper),
			spread: C.bool(o.Spread), ttl_ms: ttlMillis(o.TTL), wait_ms: waitMillis(o.Wait), cancel_fd: fd}
		return s.use(&h.err, func(e *cError) cStatus {
			return C.take(C.uintptr_t(uintptr(unsafe.Pointer(s.hf))), text(lines, h.names[:0]...), text(o.Label, h.label[:0]...),
				want, taken, e)
		}, lines, o.Label)
	}
	if waitMillis(o.Wait) == 0 && ctx.Err() == nil {
		return try(0)
	}
	return s.cancellable(ctx, try)
}

// Lock takes the lock. Ending ctx ends the wait and leaves the queue.
func (s *Store) Lock(ctx context.Context, name string, options Options) (*Lease, error) {
	return s.Any(ctx, []string{name}, options)
}

// Any takes one of several locks, the first that is free; its Name says which. It waits for all of them at once.
func (s *Store) Any(ctx context.Context, names []string, options Options) (*Lease, error) {
	h := holds.Get().(*hold)
	if err := s.take(ctx, names, &options, false, &h.taken, h); err != nil {
		holds.Put(h)
		return nil, err
	}
	return h.lease(s, names[h.taken.which], h.taken), nil
}

// All takes several locks, all or nothing, in one order for everybody: no two callers wait for each other.
func (s *Store) All(ctx context.Context, names []string, options Options) (Leases, error) {
	taken, leases := make([]C.struct_taken, len(names)+1), make(Leases, len(names))
	if err := s.take(ctx, names, &options, true, &taken[0], new(hold)); err != nil {
		return nil, err
	}
	for i, name := range names {
		leases[i] = holds.Get().(*hold).lease(s, name, taken[i])
	}
	return leases, nil
}

// With holds the lock while body runs; its context ends when the lease is lost. It returns a Lost error if body
// succeeded and the lease was lost, and body's own error if it failed.
func (s *Store) With(ctx context.Context, name string, options Options, body func(context.Context, *Lease) error) error {
	return s.WithAll(ctx, []string{name}, options, func(ctx context.Context, all Leases) error { return body(ctx, all[0]) })
}

// WithAll is With for several locks: its context ends when one of them is lost.
func (s *Store) WithAll(ctx context.Context, names []string, options Options, body func(context.Context, Leases) error) error {
	all, err := s.All(ctx, names, options)
	if err != nil {
		return err
	}
	defer all.Release() // if body panics
	if err = body(all.Context(ctx), all); err != nil {
		return err
	}
	return all.Release()
}

// Elect stands for one term as leader; the token is the term. options.Address is told to those who ask Leader.
func (s *Store) Elect(ctx context.Context, name string, options Options) (*Lease, error) {
	if options.Wait == 0 {
		options.Wait = Forever
	}
	lease, err := s.Lock(ctx, name, options)
	if err == nil && options.Address != "" {
		if err = lease.Put(C.HF_LEADER_KEY, []byte(options.Address), 0); err != nil {
			_ = lease.Release()
			return nil, err
		}
	}
	return lease, err
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

//export holdfast_go_record
func holdfast_go_record(r *C.struct_hf_record, to unsafe.Pointer) C.bool {
	record := Record{C.GoString(r.key), C.GoBytes(r.value, C.int(r.value_len)), uint64(r.token), uint64(r.number),
		time.UnixMilli(int64(r.written_ms)), time.Time{}}
	if r.until_ms != 0 {
		record.Until = time.UnixMilli(int64(r.until_ms))
	}
	found := (*cgo.Handle)(to).Value().(*[]Record)
	*found = append(*found, record)
	return true
}

//export holdfast_go_leader
func holdfast_go_leader(l *C.struct_hf_leader, to unsafe.Pointer) {
	*(*cgo.Handle)(to).Value().(**Leader) = &Leader{uint64(l.term), C.GoString(l.label), C.GoString(l.address),
		duration(l.age_ms), duration(l.remaining_ms)}
}

// told runs call, which has to told by calling one of the above.
func (s *Store) told(to any, call func(to unsafe.Pointer, e *cError) cStatus, texts ...string) error {
	handle := cgo.NewHandle(to)
	defer handle.Delete()
	return s.use(new(cError), func(e *cError) cStatus { return call(unsafe.Pointer(&handle), e) }, texts...)
}

// Leader tells who leads, or nil.
func (s *Store) Leader(name string) (leader *Leader, err error) {
	err = s.told(&leader, func(to unsafe.Pointer, e *cError) cStatus {
		return C.hf_leader(s.hf, text(name), (*C.hf_leader_fn)(C.holdfast_go_leader), to, e)
	}, name)
	return leader, err
}

// Records are those of the lock whose keys start with prefix.
func (s *Store) Records(name, prefix string) (found []Record, err error) {
	err = s.told(&found, func(to unsafe.Pointer, e *cError) cStatus {
		return C.hf_record_list(s.hf, text(name), text(prefix), (*C.hf_record_fn)(C.holdfast_go_record), to, e)
	}, name, prefix)
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
	return s.use(new(cError), func(e *cError) cStatus {
		return C.break_hold(s.hf, text(name), C.uint64_t(token), how, e)
	}, name, reason)
}
