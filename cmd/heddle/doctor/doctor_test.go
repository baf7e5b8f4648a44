package doctor

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// goodHost has everything.
func goodHost() Host {
	files := map[string]string{
		"/proc/sys/kernel/osrelease":     "6.1.0-37-amd64\n",
		"/lib64/ld-linux-x86-64.so.2":    "\x7fELF",
		"/proc/meminfo":                  "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n",
		"/proc/sys/vm/overcommit_memory": "0\n",
		"/proc/sys/vm/max_map_count":     "65530\n",
	}
	return Host{
		direct:   true,
		unicorn:  [3]int{2, 1, 1},
		z3:       true,
		plots:    true,
		platform: "linux/amd64",
		read: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		},
		look:     func(program string) (string, error) { return "/usr/bin/" + program, nil },
		limit:    func(int) (uint64, error) { return math.MaxUint64, nil },
		tempFree: func() (uint64, error) { return 100 << 30, nil },
	}
}

func withFile(h Host, path, text string) Host {
	read := h.read
	h.read = func(p string) ([]byte, error) {
		if p == path {
			if text == "" {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}
		return read(p)
	}
	return h
}

func withLimit(h Host, resource int, limit uint64) Host {
	h.limit = func(r int) (uint64, error) {
		if r == resource {
			return limit, nil
		}
		return math.MaxUint64, nil
	}
	return h
}

func diagnose(h Host) (string, bool) {
	var out bytes.Buffer
	works, err := Report(&out, h)
	if err != nil {
		return err.Error(), false
	}
	return out.String(), works
}

func TestDoctorFindsNothingWrong(t *testing.T) {
	text, works := diagnose(goodHost())
	if !works || strings.Contains(text, "->") || strings.Count(text, "ok ") != len(checks) {
		t.Errorf("works %v:\n%s", works, text)
	}
}

func TestDoctorSaysWhatToDo(t *testing.T) {
	old, newer, other, bare, full, plain := goodHost(), goodHost(), goodHost(), goodHost(), goodHost(), goodHost()
	without, neither, less := goodHost(), goodHost(), goodHost()
	without.unicorn, neither.unicorn, neither.direct = [3]int{}, [3]int{}, false
	less.z3, less.plots = false, false
	old.unicorn = [3]int{2, 0, 1}
	newer.unicorn = [3]int{2, 1, 4}
	plain.direct = false
	other.platform = "linux/arm64"
	bare.look = func(string) (string, error) { return "", os.ErrNotExist }
	full.tempFree = func() (uint64, error) { return 1 << 20, nil }
	for want, c := range map[string]struct {
		host  Host
		works bool
	}{
		"BAD platform linux/arm64, kernel 6.1.0-37-amd64 -> run heddle on x86-64 Linux":                      {other, false},
		"BAD Unicorn library 2.0.1 -> install libunicorn-dev 2.1.1":                                          {old, false},
		"note Unicorn library none -> install libunicorn2t64 2.1.1 of Debian 13":                             {without, true},
		"BAD Unicorn library none -> install libunicorn2t64 2.1.1 of Debian 13":                              {neither, false},
		"ok engines direct ok dynamic loader":                                                                {without, true},
		"note Z3 library none -> install libz3-4":                                                            {less, true},
		"note drawing of plots heddle-plot is missing -> `make build` makes it":                              {less, true},
		"ok Slurm none; experiment run --slurm cannot be used from here":                                     {bare, true},
		"note Unicorn library 2.1.4 -> 2.1.1 is the version that was measured":                               {newer, true},
		"note engines unicorn -> --engine direct needs a host processor with the instructions of x86-64-v2":  {plain, true},
		"note dynamic loader /lib64/ld-linux-x86-64.so.2 is missing -> install libc6":                        {withFile(goodHost(), "/lib64/ld-linux-x86-64.so.2", ""), true},
		"note memory 976 MiB available -> 2 GiB are needed":                                                  {withFile(goodHost(), "/proc/meminfo", "MemAvailable: 1000000 kB"), true},
		"note memory /proc/meminfo cannot be read":                                                           {withFile(goodHost(), "/proc/meminfo", "MemTotal: 5"), true},
		"BAD overcommit mode 2 -> the guest's memory is reserved address space":                              {withFile(goodHost(), "/proc/sys/vm/overcommit_memory", "2"), false},
		"note memory mappings 1000 allowed -> set vm.max_map_count":                                          {withFile(goodHost(), "/proc/sys/vm/max_map_count", "1000"), true},
		"BAD address space limit 1073741824 -> raise it with ulimit -v unlimited":                            {withLimit(goodHost(), unix.RLIMIT_AS, 1<<30), false},
		"note open files limit 256 -> raise it with ulimit -n 1024":                                          {withLimit(goodHost(), unix.RLIMIT_NOFILE, 256), true},
		"note programs of the demo missing: pbzip2, pigz, zstd -> internal/setup/packages.sh demo installs":  {bare, true},
		"note tools of the tests missing: gcc, qemu-x86_64 -> internal/setup/packages.sh test installs them": {bare, true},
		"note temporary files 1 MiB free in":                                                                 {full, true},
	} {
		text, works := diagnose(c.host)
		if text := strings.Join(strings.Fields(text), " "); works != c.works || !strings.Contains(text, want) {
			t.Errorf("works %v, want %v and %q in:\n%s", works, c.works, want, text)
		}
	}
}
