package holdfast

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestOnceTellsWhoDidIt(t *testing.T) {
	store, ctx, runs := open(t), context.Background(), 0
	work := func(ctx context.Context, job *Job) error {
		runs++
		if ctx.Err() != nil || job.Slot == "" || job.Token() == 0 {
			t.Error("not ours:", job, job.Slot, ctx.Err())
		}
		_ = job.Release() // it is not the body's to give back
		if _, err := store.Lock(ctx, "once", Options{}); !errors.Is(err, Busy) {
			t.Error("the lock was given back in the middle:", err)
		}
		return nil
	}
	for i := 0; i < 2; i++ {
		result, err := store.Once(ctx, "once", OnceOptions{Per: 24 * time.Hour, Label: "me"}, work)
		if err != nil || result.Outcome != "done" || result.By != "me" || result.Ran != (i == 0) {
			t.Error(result, err)
		}
	}
	if runs != 1 {
		t.Error(runs, "runs")
	}
}

func TestOncePanicIsAFailureOnRecord(t *testing.T) {
	store := open(t)
	options := OnceOptions{Per: 24 * time.Hour}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_, _ = store.Once(context.Background(), "once panics", options, func(context.Context, *Job) error { panic("on purpose") })
	}()
	result, err := store.Once(context.Background(), "once panics", options, func(context.Context, *Job) error { return nil })
	if err != nil || result.Outcome != "failed" || result.Ran {
		t.Error(result, err)
	}
}

func TestOnceEndsTheBodyWhenTheLeaseIsLost(t *testing.T) {
	store := open(t)
	_, err := store.Once(context.Background(), "once lost", OnceOptions{}, func(ctx context.Context, job *Job) error {
		if err := store.Break("once lost", job.Token(), "", true); err != nil {
			t.Error(err)
		}
		_ = job.Renew(0) // hears of it
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Error("not told")
		}
		return nil
	})
	if !errors.Is(err, Lost) {
		t.Error("the body succeeded, the lease was lost, and it said", err)
	}
}

func TestOnceIsCancelled(t *testing.T) {
	store := open(t)
	lease := take(t, store, "once waits", Options{})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := store.Once(ctx, "once waits", OnceOptions{Wait: Forever}, func(context.Context, *Job) error { return nil })
	if !errors.Is(err, Cancelled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err = lease.Release(); err != nil {
		t.Error(err)
	}
}
