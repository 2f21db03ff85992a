package holdfast

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sort"
	"time"
	"unsafe"
)

// acquire takes one of the locks, or all of them. Ending ctx, or the store, ends the wait.
func (s *Store) acquire(ctx context.Context, names []string, all bool, options Options) (leases Leases, err error) {
	list := make([]byte, 0, 64)
	for _, name := range names {
		if _, err = plain(name, "a lock name"); err != nil {
			return nil, err
		}
		list = append(append(list, name...), 0)
	}
	var label *C.char
	ttl, err := ttlMillis(options.TTL)
	if err == nil && options.Label != "" {
		label, err = plain(options.Label, "a label")
	}
	if err != nil {
		return nil, err
	}
	list = append(list, 0) // there is a first byte even if there are no names
	held := make([]*C.struct_hf_lease, len(names)+1)
	take := func(fd C.int) error {
		return s.use(func(e *C.struct_hf_error) error {
			want := C.struct_want{count: C.size_t(len(names)), all: C.bool(all), ttl_ms: ttl, wait_ms: waitMillis(options.Wait),
				cancel_fd: fd, no_keeper: C.bool(options.NoKeeper), spread: C.bool(options.Spread)}
			return failure(C.acquire(s.hf, (*C.char)(unsafe.Pointer(&list[0])), want, label, &held[0], e), e, 0)
		})
	}
	if options.Wait == 0 && ctx.Err() == nil {
		err = take(0)
	} else {
		err = cancellable(ctx, s.closing, take)
	}
	for i, hf := range held {
		if hf != nil {
			lease := &Lease{store: s, name: names[i], hf: hf, end: &end{over: make(chan struct{})}}
			lease.token = uint64(C.hf_lease_token(hf))
			runtime.SetFinalizer(lease, func(l *Lease) { go l.Release() })
			leases = append(leases, lease)
		}
	}
	return leases, err
}

// Any takes one of several locks, the first that is free; its Name says which. It waits for all of them at once.
func (s *Store) Any(ctx context.Context, names []string, options Options) (*Lease, error) {
	leases, err := s.acquire(ctx, names, false, options)
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// All takes several locks, all or nothing, in one order for everybody: no two callers wait for each other.
func (s *Store) All(ctx context.Context, names []string, options Options) (Leases, error) {
	return s.acquire(ctx, names, true, options)
}

// WithAll is With for several locks: its context ends when one of them is lost.
func (s *Store) WithAll(ctx context.Context, names []string, options Options, body func(context.Context, Leases) error) error {
	leases, err := s.All(ctx, names, options)
	if err != nil {
		return err
	}
	defer leases.Release()
	if err = body(leases.Context(ctx), leases); err != nil {
		return err
	}
	return leases.Release()
}

// Leases are those of All, in the order of the names. The loss of one is the loss of all.
type Leases []*Lease

// Remaining is that of the lease that ends first.
func (all Leases) Remaining() time.Duration {
	least := time.Duration(math.MaxInt64)
	for _, lease := range all {
		if left := lease.Remaining(); left < least {
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
		if err := lease.Release(); first == nil || errors.Is(err, Lost) && !errors.Is(first, Lost) {
			first = err
		}
	}
	return first
}
