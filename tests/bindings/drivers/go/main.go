// Command driver does with the Go binding what it is told, line by line: tests/bindings/README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"holdfast"
)

type answer map[string]any

// held is one lease, or all of several.
type held interface {
	Remaining() time.Duration
	Check() error
	Context(parent context.Context) context.Context
	Release() error
}

type task struct {
	cancel context.CancelFunc
	result chan func() answer
}

var (
	ctx     = context.Background()
	store   *holdfast.Store
	leases  = map[int]held{}
	tasks   = map[int]task{}
	errBody = errors.New("the body failed")
)

func now() float64 {
	var t syscall.Timespec
	const clockMonotonic = 1
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Sec)*1e3 + float64(t.Nsec)/1e6
}

func failed(err error) answer {
	var e *holdfast.Error
	if !errors.As(err, &e) {
		return answer{"error": "Body", "text": err.Error()}
	}
	names := []string{"", "Busy", "Lost", "Stale", "Cancelled", "Unknown", "Unreachable", "Quarantine", "Denied", "Invalid",
		"Unsupported", "Corrupt", "NoMemory"}
	return answer{"error": names[e.Status], "text": e.Text, "reason": string(e.Reason), "at": now(),
		"retry_after_ms": e.RetryAfter.Milliseconds(), "shown": fmt.Sprint(err, *e, store)}
}

func ms(arg any) time.Duration {
	if arg.(float64) < 0 {
		return holdfast.Forever
	}
	return time.Duration(arg.(float64) * float64(time.Millisecond))
}

// options of [ttl, wait, label, keep], as far as they are there.
func options(args []any) holdfast.Options {
	o := holdfast.Options{TTL: ms(args[0]), Wait: ms(args[1])}
	if len(args) > 2 && args[2] != nil {
		o.Label = args[2].(string)
	}
	o.NoKeeper = len(args) > 3 && !args[3].(bool)
	return o
}

// names of {"any": names} or {"all": names}.
func names(arg any, kind string) (list []string, ok bool) {
	object, _ := arg.(map[string]any)
	found, ok := object[kind].([]any)
	for _, name := range found {
		list = append(list, name.(string))
	}
	return list, ok
}

func take(ctx context.Context, name any, o holdfast.Options) (held, error) {
	if list, ok := names(name, "any"); ok {
		return store.Any(ctx, list, o)
	}
	if list, ok := names(name, "all"); ok {
		return store.All(ctx, list, o)
	}
	return store.Lock(ctx, name.(string), o)
}

func taken(slot int, lease held, err error) answer {
	if err != nil {
		return failed(err)
	}
	leases[slot] = lease
	all, several := lease.(holdfast.Leases)
	if !several {
		all = holdfast.Leases{lease.(*holdfast.Lease)}
	}
	name := all[0].Name()
	for _, one := range all[1:] {
		name += "+" + one.Name()
	}
	return answer{"ok": strconv.FormatUint(all[0].Token(), 10), "name": name, "remaining": lease.Remaining().Milliseconds(),
		"at": now()}
}

func done(err error) answer {
	if err != nil {
		return failed(err)
	}
	return answer{"ok": true}
}

func begin(slot int, name any, o holdfast.Options) answer {
	one, cancel := context.WithCancel(ctx)
	t := task{cancel, make(chan func() answer, 1)}
	tasks[slot] = t
	go func() {
		lease, err := take(one, name, o)
		if err != nil {
			if errors.Is(err, holdfast.Cancelled) && !errors.Is(err, context.Canceled) {
				err = errors.New("not the context's error")
			}
			why := failed(err)
			t.result <- func() answer { return why }
			return
		}
		at := now()
		t.result <- func() answer {
			got := taken(slot, lease, nil)
			got["at"] = at
			return got
		}
	}()
	return answer{"ok": true}
}

func with(name any, o holdfast.Options, fail bool, pause time.Duration) answer {
	body := func() error {
		time.Sleep(pause)
		if fail {
			return errBody
		}
		return nil
	}
	if list, ok := names(name, "all"); ok {
		return done(store.WithAll(ctx, list, o, func(context.Context, holdfast.Leases) error { return body() }))
	}
	return done(store.With(ctx, name.(string), o, func(context.Context, *holdfast.Lease) error { return body() }))
}

func once(key string, given map[string]any, failures int) answer {
	number := func(name string) float64 { n, _ := given[name].(float64); return n }
	word := func(name string) string { text, _ := given[name].(string); return text }
	o := holdfast.OnceOptions{Per: ms(number("per")), Retries: uint32(number("retries")), Wait: ms(number("wait")),
		TZ: word("tz"), Label: word("label")}
	result, err := store.Once(ctx, key, o, func(context.Context, *holdfast.Job) error {
		if failures--; failures >= 0 {
			return errBody
		}
		return nil
	})
	if err != nil {
		return failed(err)
	}
	return answer{"ok": result.Outcome, "ran": result.Ran, "text": result.Text}
}

func turn(counter, who string) error {
	text, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err = os.WriteFile(counter, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(counter+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = fmt.Fprintln(log, who)
	return err
}

func turns(count int, name, counter, who string) answer {
	for i := 0; i < count; i++ {
		err := store.With(ctx, name, holdfast.Options{Wait: holdfast.Forever}, func(context.Context, *holdfast.Lease) error {
			return turn(counter, who)
		})
		if err != nil {
			return failed(err)
		}
	}
	return answer{"ok": count}
}

func run(command string, a []any) answer {
	slot := func() int { return int(a[0].(float64)) }
	lease := func() held { return leases[slot()] }
	one := func() *holdfast.Lease { return lease().(*holdfast.Lease) }
	text := func(i int) string { return a[i].(string) }
	switch command {
	case "open":
		var err error
		o := holdfast.OpenOptions{}
		if len(a) > 1 {
			o.Wait = ms(a[1])
		}
		if store, err = holdfast.Open(ctx, text(0), o); err != nil {
			return failed(err)
		}
		return answer{"ok": store.URL()}
	case "lock":
		got, err := take(ctx, a[1], options(a[2:]))
		return taken(slot(), got, err)
	case "begin":
		return begin(slot(), a[1], options(a[2:]))
	case "cancel":
		tasks[slot()].cancel()
		return answer{"ok": true}
	case "join":
		return (<-tasks[slot()].result)()
	case "lost":
		select {
		case <-lease().Context(ctx).Done():
		case <-time.After(time.Minute):
		}
		at, reason := now(), lease().Check()
		var e *holdfast.Error
		if !errors.As(reason, &e) {
			return answer{"ok": nil}
		}
		return answer{"ok": string(e.Reason), "at": at}
	case "with":
		return with(a[0], options([]any{a[1], 0.0, nil, a[3]}), a[2].(bool), ms(a[4]))
	case "put":
		return done(one().Put(text(1), []byte(text(2)), 0))
	case "get":
		record, err := store.Get(text(0), text(1))
		if err != nil || record == nil {
			return answer{"ok": nil}
		}
		return answer{"ok": string(record.Value), "token": strconv.FormatUint(record.Token, 10)}
	case "elect":
		got, err := store.Elect(ctx, text(1), holdfast.Options{Address: text(2)})
		return taken(slot(), got, err)
	case "once":
		return once(text(0), a[1].(map[string]any), int(a[2].(float64)))
	case "break":
		token, _ := strconv.ParseUint(text(1), 10, 64)
		return done(store.Break(text(0), token, text(2), false))
	case "leader":
		found, err := store.Leader(text(0))
		if err != nil || found == nil {
			return answer{"ok": nil}
		}
		return answer{"ok": strconv.FormatUint(found.Term, 10), "address": found.Address}
	case "turns":
		return turns(int(a[0].(float64)), text(1), text(2), text(3))
	case "check":
		return done(lease().Check())
	case "renew":
		if err := one().Renew(ms(a[1])); err != nil {
			return failed(err)
		}
		return answer{"ok": true, "remaining": lease().Remaining().Milliseconds()}
	case "release":
		return done(lease().Release())
	case "remaining":
		return answer{"ok": true, "remaining": lease().Remaining().Milliseconds()}
	case "close":
		store.Close()
		return answer{"ok": true}
	}
	return answer{"error": "Body", "text": "no such command"}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var line []any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			panic(err)
		}
		_ = out.Encode(run(line[0].(string), line[1:]))
	}
}
