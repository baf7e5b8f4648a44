package sock_test

import "testing"

// TestTimeWait binds and connects to the addresses of connections that are
// over: of the side that ended first something remains.
func TestTimeWait(t *testing.T) {
	for _, end := range []string{
		"close s\nclose c",                   // remains of s
		"close c\nclose s",                   // of c
		"shutdown s wr\nclose c\nclose s",    // of s
		"set s linger 1,0\nclose s\nclose c", // of none
		"send s 5\nclose c\nclose s",
	} {
		for _, reuse := range []string{"", "set l reuseaddr 1\n", "set l reuseport 1\n"} {
			overBoth(t, `
				socket l FAMILY stream
				`+reuse+`
				bind l HOST:0
				listen l 5
				socket c FAMILY stream
				connect c HOST:=l
				connect c HOST:=l
				accept l s
				`+end+`
				close l
				socket a FAMILY stream
				bind a HOST:=l
				bind a HOST:=c
				socket b FAMILY stream
				set b reuseaddr 1
				bind b HOST:=l
				listen b 3
				socket d FAMILY stream
				set d reuseport 1
				bind d HOST:=l
				listen d 3
				socket e FAMILY stream
				bind e HOST:=c
				socket f FAMILY stream
				set f reuseaddr 1
				bind f HOST:=c
				connect f HOST:=l
				name f
				peer f
				socket g FAMILY stream
				connect g HOST:=l
			`)
		}
	}
}

// TestTimeWaitWhileOpen looks at a socket whose connection is over, and at its
// port.
func TestTimeWaitWhileOpen(t *testing.T) {
	overBoth(t, connection+`
		shutdown c wr
		shutdown s wr
		poll c
		name c
		peer c
		recv c 1
		get c error
		connect c HOST:=l
		name c
		socket a FAMILY stream
		bind a HOST:=c
		socket x FAMILY stream
		set x reuseaddr 1
		bind x HOST:0
		connect x HOST:=l
		connect x HOST:=l
		accept l y
		shutdown x wr
		shutdown y wr
		connect x HOST:=l
		name x
	`)
}
