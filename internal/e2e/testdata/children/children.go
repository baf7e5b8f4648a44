// Command children has goroutines that start processes, and prints the length of what these say.
package main

import (
	"fmt"
	"os/exec"
)

func main() {
	said := make(chan string)
	for i := range 3 {
		go func() {
			out, err := exec.Command("/bin/echo", fmt.Sprint("child ", i)).Output()
			said <- fmt.Sprint(string(out), err)
		}()
	}
	n := 0
	for range 3 {
		n += len(<-said)
	}
	fmt.Println(n)
}
