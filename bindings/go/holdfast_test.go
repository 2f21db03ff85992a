package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// open opens the store that HOLDFAST_TEST_STORE names, or an embedded one of the test's own.
func open(t *testing.T) *Store {
	t.Helper()
	url := os.Getenv("HOLDFAST_TEST_STORE")
	if url == "" {
		url = "file:" + t.TempDir()
	}
	store, err := Open(context.Background(), url, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func take(t *testing.T, store *Store, name string, options Options) *Lease {
	t.Helper()
	lease, err := store.Lock(context.Background(), name, options)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestThousandGoroutinesTakeTurns(t *testing.T) {
	store, count, last := open(t), 0, uint64(0)
	var all sync.WaitGroup
	for i := 0; i < 1000; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			err := store.With(context.Background(), "crowd", Options{Wait: 2 * time.Minute}, func(_ context.Context, l *Lease) error {
				count++ // no other lock guards it
				if l.Token() <= last {
					t.Error("a token that does not rise")
				}
				last = l.Token()
				return l.Check()
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if count != 1000 {
		t.Error(count, "turns")
	}
}

func TestCancelStorm(t *testing.T) {
	store := open(t)
	var all sync.WaitGroup
	var taken, cancelled atomic.Int64
	for i := 0; i < 200; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < 5; n++ {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.Intn(20000))*time.Microsecond)
				lease, err := store.Lock(ctx, "storm", Options{Wait: Forever})
				switch {
				case err == nil:
					taken.Add(1)
					if err = lease.Release(); err != nil {
						t.Error(err)
					}
				case errors.Is(err, Cancelled) && errors.Is(err, context.DeadlineExceeded):
					cancelled.Add(1)
				default:
					t.Error(err)
				}
				cancel()
			}
		}()
	}
	all.Wait()
	if taken.Load()+cancelled.Load() != 1000 {
		t.Error(taken.Load(), cancelled.Load())
	}
	if err := take(t, store, "storm", Options{}).Release(); err != nil {
		t.Error("something stayed held:", err)
	}
}

func TestWaitThatIsOverIsOneTry(t *testing.T) {
	store := open(t)
	lease := take(t, store, "over", Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := store.Lock(ctx, "over", Options{Wait: time.Until(time.Now().Add(-time.Second))}); !errors.Is(err, Busy) {
		t.Fatalf("not Busy: %v", err)
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestCloseEndsWaits(t *testing.T) {
	store := open(t)
	lease := take(t, store, "held", Options{})
	ended := make(chan error, 20)
	for i := 0; i < 20; i++ {
		go func() {
			_, err := store.Lock(context.Background(), "held", Options{Wait: Forever})
			ended <- err
		}()
	}
	time.Sleep(100 * time.Millisecond)
	store.Close()
	for i := 0; i < 20; i++ {
		if err := <-ended; !errors.Is(err, Cancelled) && !errors.Is(err, Invalid) {
			t.Error(err)
		}
	}
	if _, err := store.Lock(context.Background(), "held", Options{}); !errors.Is(err, Invalid) {
		t.Error(err)
	}
	var why *Error
	if err := lease.Release(); !errors.As(err, &why) || why.Reason != Closed {
		t.Error(err)
	}
	store.Close()
}

func TestLookingWhileReleasing(t *testing.T) {
	store := open(t)
	for i := 0; i < 100; i++ {
		lease := take(t, store, "looked at", Options{})
		var all sync.WaitGroup
		for n := 0; n < 4; n++ {
			all.Add(1)
			go func() {
				defer all.Done()
				for lease.Check() == nil {
					_ = lease.Remaining()
					_ = lease.Renew(0)
				}
			}()
		}
		ctx := lease.Context(context.Background())
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		all.Wait()
		if err := lease.Release(); err != nil {
			t.Error("a second release:", err)
		}
	}
}

func TestContextEndsWithTheLease(t *testing.T) {
	store := open(t)
	lease := take(t, store, "context", Options{})
	parent, cancel := context.WithCancel(context.Background())
	ctx := lease.Context(parent)
	cancel()
	<-ctx.Done()
	ctx = lease.Context(context.Background())
	if ctx.Err() != nil {
		t.Error("over before its time")
	}
	store.Close() // the lease is lost
	<-ctx.Done()
	if err := lease.Check(); !errors.Is(err, Lost) {
		t.Error(err)
	}
}

func TestCollectedLeaseIsGivenBack(t *testing.T) {
	store := open(t)
	func() {
		lease := take(t, store, "dropped", Options{})
		_ = lease.Context(context.Background())
	}()
	for i := 0; i < 200; i++ {
		runtime.GC()
		if lease, err := store.Lock(context.Background(), "dropped", Options{}); err == nil {
			_ = lease.Release()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("still held")
}

func TestPanicReleases(t *testing.T) {
	store := open(t)
	func() {
		defer func() { _ = recover() }()
		_ = store.With(context.Background(), "panic", Options{}, func(context.Context, *Lease) error { panic("on purpose") })
	}()
	if err := take(t, store, "panic", Options{}).Release(); err != nil {
		t.Error(err)
	}
}

func TestAnyTakesTheFreeOne(t *testing.T) {
	store, ctx := open(t), context.Background()
	seats := []string{"any/a", "any/b"}
	a := take(t, store, "any/a", Options{Label: "first"})
	b, err := store.Any(ctx, seats, Options{})
	if err != nil || b.Name() != "any/b" || b.Check() != nil {
		t.Fatal(b, err)
	}
	if _, err = store.Any(ctx, seats, Options{}); !errors.Is(err, Busy) {
		t.Fatal("others hold both, and it said", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = a.Release() })
	next, err := store.Any(ctx, seats, Options{Wait: time.Minute, Spread: true})
	if err != nil || next.Name() != "any/a" || next.Token() <= a.Token() {
		t.Fatal(next, err)
	}
	waiting, cancel := context.WithCancel(ctx)
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err = store.Any(waiting, seats, Options{Wait: Forever}); !errors.Is(err, Cancelled) || !errors.Is(err, context.Canceled) {
		t.Fatal("its context ended, and it said", err)
	}
	if b.Release() != nil || next.Release() != nil {
		t.Fatal("they were held to the end")
	}
}

func TestAllOrNothing(t *testing.T) {
	store, ctx := open(t), context.Background()
	both := []string{"all/b", "all/a"}
	b := take(t, store, "all/b", Options{})
	if _, err := store.All(ctx, both, Options{}); !errors.Is(err, Busy) {
		t.Fatal("another holds one, and it said", err)
	}
	take(t, store, "all/a", Options{}).Release() // nothing is kept
	waiting, cancel := context.WithCancel(ctx)
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := store.All(waiting, both, Options{Wait: Forever}); !errors.Is(err, Cancelled) {
		t.Fatal("its context ended, and it said", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = b.Release() })
	err := store.WithAll(ctx, both, Options{Wait: time.Minute}, func(ctx context.Context, all Leases) error {
		if all[0].Name() != "all/b" || all[1].Name() != "all/a" || all.Remaining() <= 0 || ctx.Err() != nil {
			t.Error(all)
		}
		return all.Check()
	})
	if err != nil {
		t.Fatal(err)
	}
	take(t, store, "all/a", Options{}).Release()
	take(t, store, "all/b", Options{}).Release()
	for _, names := range [][]string{nil, {"twice", "twice"}, {"a", "n\x00l"}, make([]string, 70)} {
		if _, err := store.All(ctx, names, Options{}); !errors.Is(err, Invalid) {
			t.Error(names, err)
		}
		if _, err := store.Any(ctx, names, Options{}); !errors.Is(err, Invalid) {
			t.Error(names, err)
		}
	}
}

func TestWhatHasANULIsRefused(t *testing.T) {
	store, ctx, nul := open(t), context.Background(), "cut\x00off"
	lease := take(t, store, "whole", Options{})
	work := func(context.Context, *Job) error { t.Error("the work was begun"); return nil }
	once := func(key string, options OnceOptions) error { _, err := store.Once(ctx, key, options, work); return err }
	_, named := store.Lock(ctx, nul, Options{})
	_, labelled := store.Lock(ctx, "labelled", Options{Label: nul})
	_, opened := Open(ctx, "file:"+t.TempDir()+nul, OpenOptions{})
	_, listed := store.Records("whole", nul)
	_, got := store.Get("whole", nul)
	_, led := store.Leader(nul)
	for what, err := range map[string]error{"name": named, "label": labelled, "URL": opened, "prefix": listed, "key": got,
		"leader": led, "put": lease.Put(nul, nil, 0), "broken": store.Break(nul, 1, "", false),
		"reason": store.Break("whole", lease.Token(), nul, false), "work": once(nul, OnceOptions{}),
		"zone": once("zone", OnceOptions{Per: 24 * time.Hour, TZ: "UTC\x00"}),
		"at":   once("at", OnceOptions{Per: 24 * time.Hour, At: "03:00\x00"}), "by": once("by", OnceOptions{Label: nul})} {
		if !errors.Is(err, Invalid) {
			t.Error(what, err)
		}
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

func TestLossOfOneIsTheLossOfAll(t *testing.T) {
	store, errBody := open(t), errors.New("the body failed")
	hold := func(failed error) error {
		return store.WithAll(context.Background(), []string{"lost/a", "lost/b"}, Options{TTL: time.Second},
			func(ctx context.Context, all Leases) error {
				if err := store.Break("lost/a", all[0].Token(), "", true); err != nil {
					t.Error(err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				if !errors.Is(all.Check(), Lost) || all.Remaining() != 0 {
					t.Error("one is lost, and not the whole")
				}
				return failed
			})
	}
	if err := hold(nil); !errors.Is(err, Lost) {
		t.Fatal("one was lost, and it said", err)
	}
	if err := hold(errBody); err != errBody {
		t.Fatal("the body's error comes first, not", err)
	}
	take(t, store, "lost/b", Options{}).Release()
}

func TestReleasedLeaseIsNobodyElses(t *testing.T) {
	store := open(t)
	for i := 0; i < 200; i++ {
		old := take(t, store, "old", Options{})
		if err := old.Release(); err != nil {
			t.Fatal(err)
		}
		next := take(t, store, "old", Options{}) // what it is made of may have been the old one's
		if err := old.Release(); err != nil || old.Remaining() != 0 || !errors.Is(old.Check(), Invalid) {
			t.Fatal("a released lease does something:", err)
		}
		select {
		case <-old.Done():
		default:
			t.Fatal("released, and not done")
		}
		if next.Check() != nil || next.Release() != nil {
			t.Fatal("the next one was released with the old one")
		}
	}
}

func TestReleasedLeaseHoldsUpNobody(t *testing.T) {
	store := open(t)
	old, next := &Lease{}, &Lease{hold: &hold{}}
	for old.hold != next.hold { // they are made of the same
		old = take(t, store, "busy", Options{})
		_ = old.Release()
		if next = take(t, store, "busy", Options{}); old.hold != next.hold {
			_ = next.Release()
		}
	}
	var over atomic.Bool
	for i := 0; i < 100; i++ {
		go func() {
			for !over.Load() {
				_ = old.Check()
			}
		}()
	}
	time.Sleep(50 * time.Millisecond)
	released := make(chan error, 1)
	go func() { released <- next.Release() }()
	select {
	case err := <-released:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("calls of a released lease keep the next one from being released")
	}
	over.Store(true)
}

func TestDroppedLeasesUnderPressure(t *testing.T) {
	store := open(t)
	for i := 0; i < 300; i++ {
		lease := take(t, store, fmt.Sprint("pressed", i), Options{})
		if i%3 == 0 {
			_ = lease.Done()
		}
		if i%2 == 0 {
			_ = lease.Release()
		}
		if i%10 == 0 {
			runtime.GC()
		}
	}
	for i := 0; i < 300; i++ {
		var lease *Lease
		err := errors.New("not tried")
		for n := 0; n < 500 && err != nil; n++ {
			runtime.GC()
			if lease, err = store.Lock(context.Background(), fmt.Sprint("pressed", i), Options{}); err != nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if err != nil || lease.Release() != nil {
			t.Fatal("still held", i, err)
		}
	}
}
