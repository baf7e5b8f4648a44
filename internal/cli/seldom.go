package cli

import "time"

// progressInterval is the time between two reports of progress, and before the first.
const progressInterval = 2 * time.Second

// Seldom returns a function that passes on at most one text in two seconds, and none in the first two.
func Seldom(print func(string)) func(string) {
	next := time.Now().Add(progressInterval)
	return func(text string) {
		if now := time.Now(); now.After(next) {
			next = now.Add(progressInterval)
			print(text)
		}
	}
}
