package holdfast

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"math"
	"sort"
	"strings"
	"time"
)

// Any takes one of several locks, the first that is free; its Name says which. It waits for all of them at once.
func (s *Store) Any(ctx context.Context, names []string, options Options) (*Lease, error) {
	return s.first(ctx, strings.Join(names, "\n"), len(names), &options)
}

// All takes several locks, all or nothing, in one order for everybody: no two callers wait for each other.
func (s *Store) All(ctx context.Context, names []string, options Options) (Leases, error) {
	taken, e, leases := make([]C.struct_taken, len(names)+1), new(C.struct_hf_error), make(Leases, len(names))
	err := s.take(ctx, strings.Join(names, "\n"), options.Label, options.want(len(names), true), &taken[0], e)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		leases[i] = &Lease{hold: holds.Get().(*hold), store: s, name: name, token: uint64(taken[i].token)}
		leases[i].hold.taken = taken[i]
	}
	return leases, nil
}

// WithAll is With for several locks: its context ends when one of them is lost.
func (s *Store) WithAll(ctx context.Context, names []string, options Options, body func(context.Context, Leases) error) error {
	leases, err := s.All(ctx, names, options)
	return scope(ctx, leases, err, body)
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
