// bindings_pair.go URL - the same pair as bench_bindings.c, through the Go binding.
package main

import (
	"context"
	"fmt"
	"holdfast"
	"log"
	"os"
	"time"
)

const (
	blocks = 11
	pairs  = 400
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	store, err := holdfast.Open(ctx, os.Args[1], holdfast.OpenOptions{})
	must(err)
	least := time.Hour
	for block := 0; block < blocks; block++ {
		start := time.Now()
		for i := 0; i < pairs; i++ {
			lease, err := store.Lock(ctx, "pair", holdfast.Options{})
			must(err)
			must(lease.Release())
		}
		if took := time.Since(start); took < least {
			least = took
		}
	}
	fmt.Printf("go_pair_us %.2f\n", least.Seconds()*1e6/pairs)
	store.Close()
}
