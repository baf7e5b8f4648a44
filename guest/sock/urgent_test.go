package sock_test

import "testing"

func TestUrgentData(t *testing.T) {
	overBoth(t, connection+`
		recv s 1 oob
		ioctl s atmark
		send c 5
		send c 1 oob
		poll s
		ioctl s inq
		ioctl s atmark
		recv s 1 oob peek
		recv s 100 peek
		recv s 3
		recv s 100
		ioctl s atmark
		ioctl s inq
		poll s
		send c 4
		poll s
		ioctl s inq
		recv s 100 peek
		recv s 1 oob
		recv s 1 oob
		poll s
		ioctl s atmark
		recv s 2
		ioctl s atmark
		recv s 100
		recv s 1 oob
	`)
	overBoth(t, connection+`
		set s oobinline 1
		send c 5 oob
		send c 5
		poll s
		recv s 1 oob
		ioctl s inq
		recv s 100
		ioctl s atmark
		recv s 1
		ioctl s atmark
		recv s 100
		poll s
	`)
	overBoth(t, connection+`
		send c 3 oob
		recv s 2
		send c 3 oob
		ioctl s inq
		ioctl s atmark
		recv s 1 oob
		recv s 100
		recv s 100
		send c 1 oob
		poll s
		recv s 100
		recv s 1 oob
		send c 1 oob
		close c
		poll s
		recv s 10
		recv s 1 oob
		recv s 10
		recv s 1 oob
		poll s
		close s
	`)
	overBoth(t, connection+`
		send c 3
		send c 3 oob
		send c 3 oob
		recv s 100
		recv s 100
		recv s 1 oob
		send c 1 oob
		recv s 0
		recv s 0 oob
		recv s 0 peek
		close s
		poll c
		recv c 1
		shutdown l rd
		recv l 1 oob
		recv c 1 oob
	`)
}
