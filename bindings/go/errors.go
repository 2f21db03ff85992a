package holdfast

/*
#include "shim.h"
*/
import "C"

import "time"

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

func (s Status) Error() string { return C.GoString(C.hf_status_text(C.enum_hf_status(s))) }

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
func (s *Store) failure(status C.enum_hf_status, err *C.struct_hf_error, loss C.enum_hf_loss) error {
	if status == C.HF_OK {
		if err.text[0] != 0 && s.warn != nil {
			s.warn(C.GoString(&err.text[0]))
		}
		return nil
	}
	e := &Error{Status: Status(status), Text: C.GoString(&err.text[0])}
	if e.Status == Quarantine {
		e.RetryAfter = time.Duration(err.retry_after_ms) * time.Millisecond
	}
	if e.Status == Lost && int(loss) < len(reasons) {
		e.Reason = reasons[loss]
	}
	return e
}

func invalid(text string) error { return &Error{Status: Invalid, Text: text} }
