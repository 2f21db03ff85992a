package holdfast

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"
)

// OnceOptions say which work is meant, and what becomes of a failure. holdfast/once.h says what 0 means.
type OnceOptions struct {
	Per, Slack, StartBy, Keep time.Duration // Per 0: once for ever
	At, TZ                    string        // "03:00", "Europe/Berlin": of periods of whole days
	Retries                   uint32
	HoldCrashed               bool // a run that began and never ended waits for a person
	RetryAfter, TTL, Wait     time.Duration
	Label                     string
}

// A Job is the lease of the work while it is ours, which Once gives back.
type Job struct {
	*Lease
	Slot string // names what belongs to it, "2026-11-17"
}

// A Result is what is known about a slot.
type Result struct {
	Outcome  string // "done", "failed", "too-late", "held"; "running" and "" while nothing is settled
	Ran      bool   // by this call
	Slot, By string
	Text     string // all of it in a sentence
}

// Once runs body until it has succeeded once for key, or once per period, on however many machines. Body's context ends
// when the lease is lost. It returns body's error if this call is what failed; what others did, the result tells.
func (s *Store) Once(ctx context.Context, key string, options OnceOptions, body func(context.Context, *Job) error) (
	result Result, err error) {
	err = s.cancellable(ctx, func(fd C.int) error {
		var once *C.struct_hf_once
		o := C.struct_hf_once_options{size: C.sizeof_struct_hf_once_options, per_ms: millis(options.Per),
			slack_ms: millis(options.Slack), start_by_ms: millis(options.StartBy), keep_ms: millis(options.Keep),
			at: text(options.At), tz: text(options.TZ), label: text(options.Label), retries: C.uint32_t(options.Retries),
			retry_after_ms: millis(options.RetryAfter), hold_crashed: C.bool(options.HoldCrashed),
			ttl_ms: ttlMillis(options.TTL), wait_ms: waitMillis(options.Wait), cancel_fd: fd}
		err := s.use(new(cError), func(e *cError) cStatus { return C.open_once(s.hf, text(key), o, &once, e) },
			key, options.At, options.TZ, options.Label)
		if err != nil {
			return err
		}
		defer C.hf_once_close(once)
		for err == nil || result.Ran && C.hf_once_outcome(once) == C.HF_ONCE_OPEN && ctx.Err() == nil {
			err = s.use(new(cError), func(e *cError) cStatus { return C.hf_once_begin(once, e) })
			if err != nil || C.hf_once_outcome(once) != C.HF_ONCE_RUN {
				break
			}
			result.Ran = true
			err = s.turn(ctx, key, once, body)
		}
		result.Slot, result.Text = C.GoString(C.hf_once_slot(once)), C.GoString(C.hf_once_text(once))
		if record := C.hf_once_on_record(once); record != nil {
			result.Outcome, result.By = C.GoString(record.state), C.GoString(record.by)
		}
		return err
	})
	return result, err
}

// turn runs body, and puts on record what became of it, even if it panics.
func (s *Store) turn(ctx context.Context, key string, once *C.struct_hf_once, body func(context.Context, *Job) error) (err error) {
	hf, ending := C.hf_once_lease(once), C.enum_hf_once_ending(C.HF_ONCE_END_FAILURE)
	h := holds.Get().(*hold)
	h.borrowed = true
	lease := h.lease(s, key, C.struct_taken{lease: C.uintptr_t(uintptr(unsafe.Pointer(hf))), token: C.hf_lease_token(hf)})
	defer func() {
		_ = lease.Release()
		e, loss := new(cError), C.hf_lease_loss(hf)
		if unrecorded := s.failure(C.hf_once_end(once, ending, 1, nil, 0, e), e, loss); err == nil {
			err = unrecorded
		}
	}()
	err = body(lease.Context(ctx), &Job{lease, C.GoString(C.hf_once_slot(once))})
	if err == nil {
		ending = C.HF_ONCE_END_SUCCESS
	} else if ctx.Err() != nil {
		ending = C.HF_ONCE_END_CUT_OFF
	}
	return err
}
