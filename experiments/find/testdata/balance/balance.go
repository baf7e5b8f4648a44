// Command balance has two goroutines that take money if there is enough.
package main

import (
	"sync"
	"sync/atomic"
)

func main() {
	var balance atomic.Int64
	balance.Store(100)
	var wait sync.WaitGroup
	for range 2 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			if balance.Load() >= 100 {
				balance.Add(-100)
			}
		}()
	}
	wait.Wait()
	if balance.Load() < 0 {
		panic("too much was taken")
	}
}
