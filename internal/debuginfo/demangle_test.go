package debuginfo

import (
	"strings"
	"testing"
)

const cxxProgram = `
#include <cstdio>
#include <map>
#include <string>
namespace shop {
struct Counter {
	int n = 0;
	Counter &operator+=(int by) { n += by; return *this; }
	__attribute__((noinline)) int get(const std::string &key) const;
};
template <typename K, typename V> __attribute__((noinline)) V find(const std::map<K, V> &m, K key)
{
	auto at = m.find(key);
	return at == m.end() ? V() : at->second;
}
int Counter::get(const std::string &key) const { return n + (int)key.size(); }
namespace { __attribute__((noinline)) int hidden(int (*f)(long, char)) { return f(1, 'a'); } }
}
static int sum(long a, char b) { return a + b; }
int main(int argc, char **)
{
	std::map<long, shop::Counter> all;
	all[argc] += 2;
	auto lambda = [&](int k) __attribute__((noinline)) { return shop::find<long, shop::Counter>(all, k).n; };
	std::printf("%d %d %d\n", all[1].get("abc"), shop::hidden(sum), lambda(argc));
}
`

const rustProgram = `
mod shop {
    pub struct Counter<T> { pub n: T }
    impl Counter<u32> {
        #[inline(never)]
        pub fn bump(&mut self, by: u32) -> u32 { self.n = self.n.wrapping_add(by); self.n }
    }
    pub trait Total { fn total(&self) -> u64; }
    impl Total for [u32] {
        #[inline(never)]
        fn total(&self) -> u64 { self.iter().map(|&x| x as u64).sum() }
    }
}
use shop::Total;
#[inline(never)]
fn apply<F: Fn(u32) -> u32>(f: F, x: u32) -> u32 { f(x) }
fn main() {
    let mut c = shop::Counter { n: std::env::args().count() as u32 };
    let list: Vec<u32> = (0..c.bump(3)).collect();
    println!("{} {}", list.total(), apply(|x| x ^ 5, c.n));
}
`

// checkNames compares the demangled name of every symbol of a program with the one
// that nm -C prints, and returns the names that contain a word.
func checkNames(t *testing.T, bin, word string) (names []string) {
	t.Helper()
	// With -p nm does not sort, so that the lines of both lists correspond.
	raw := strings.Split(strings.TrimSpace(toolOutput(t, "nm", "-p", bin)), "\n")
	demangled := strings.Split(strings.TrimSpace(toolOutput(t, "nm", "-p", "-C", bin)), "\n")
	const column = len("0000000000001234 T ")
	for i, line := range raw {
		symbol, version, _ := strings.Cut(line[column:], "@")
		want, _, _ := strings.Cut(demangled[i][column:], "@")
		if got := Demangle(symbol); got != want {
			t.Errorf("%s%s is %q, nm prints %q", symbol, version, got, want)
		}
		if strings.Contains(want, word) {
			names = append(names, want)
		}
	}
	return names
}

func containsAll(t *testing.T, names []string, want ...string) {
	t.Helper()
	text := strings.Join(names, "\n")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no name has %q:\n%s", w, text)
		}
	}
}

// TestNamesOfCxx compares names and frames of a C++ program with nm -C and addr2line.
func TestNamesOfCxx(t *testing.T) {
	bin := compileIn(t, map[string]string{"p.cc": cxxProgram}, "g++", "-O2", "-g", "p.cc")
	names := checkNames(t, bin, "shop::")
	containsAll(t, names, "shop::Counter::get(", "shop::(anonymous namespace)::hidden(int (*)(long, char))", "shop::Counter shop::find<long, shop::Counter>(")
	f := open(t, bin)
	for i := range f.Symbols() {
		if s := &f.Symbols()[i]; strings.HasPrefix(string(s.RawName()), "_ZNK4shop7Counter3get") {
			if name, _ := f.FunctionAt(s.Addr); name == nil || !strings.HasPrefix(name.Name(), "shop::Counter::get(") {
				t.Errorf("%s is %v", s.RawName(), name)
			}
			checkFrames(t, bin, string(s.RawName()))
		}
	}
	if inlined := checkFrames(t, bin, "main"); inlined == 0 {
		t.Error("nothing is inlined into main")
	}
}

// TestNamesOfRust compares names and frames of a Rust program with nm -C and
// addr2line, for both ways in which compilers mangle.
func TestNamesOfRust(t *testing.T) {
	bin := compileIn(t, map[string]string{"p.rs": rustProgram}, "rustc", "-O", "-g", "p.rs")
	names := checkNames(t, bin, "shop::")
	containsAll(t, names, "shop::Counter<u32>", "bump")
}

// TestDemangle has names of the Itanium C++ ABI (section 5.1), of Rust before and
// after RFC 2603, and names that are not mangled. Expectations:
// c++filt(1), without the types of constants and the disambiguators of crates, which
// nm -C leaves out.
func TestDemangle(t *testing.T) {
	for symbol, want := range map[string]string{
		"pthread_mutex_lock":                "pthread_mutex_lock",
		"_Z1fv":                             "f()",
		"_ZN3foo3barEi":                     "foo::bar(int)",
		"_ZNSt6vectorIiSaIiEE9push_backEOi": "std::vector<int, std::allocator<int> >::push_back(int&&)",
		"_Z3addii.cold":                     "add(int, int) [clone .cold]",
		"_ZTV4Base":                         "vtable for Base",
		"_ZN3std2io5stdio6_print17h0123456789abcdefE":                                                      "std::io::stdio::_print",
		"_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE": "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
		"_RNvNtCs1234_7mycrate3foo3bar":                                                                    "mycrate::foo::bar",
		"_RNCNvC4main4works_0":                                                                             "main::work::{closure#1}",
		"_RINvC1c1fAjj8_RShQTlbENvB2_1gE":                                                                  "c::f::<[usize; 8], &[u8], &mut (i32, bool), c::g>",
		"_RINvC1c1fDG_INtC1d2FnTRL0_eEEp6OutputuEL_FUKCPhEOlE":                                             "c::f::<dyn for<'a> d::Fn<(&'a str,), Output = ()>, unsafe extern \"C\" fn(*const u8) -> *mut i32>",
		"_RINvC1c1fKb1_Kc61_Kanf_E":                                                                        "c::f::<true, 'a', -15>",
		"_RNvXs_C1cNtB4_1SNtC1d1T1m":                                                                       "<c::S as d::T>::m",
		"_RNvMC1cNtB2_1S3new":                                                                              "<c::S>::new",
		"_Rdamaged":                                                                                        "_Rdamaged",
		"_ZN":                                                                                              "_ZN",
		"":                                                                                                 "",
	} {
		if got := Demangle(symbol); got != want {
			t.Errorf("%s is %q, want %q", symbol, got, want)
		}
	}
}

// FuzzDemangle: no name makes the demanglers panic or write without bound.
func FuzzDemangle(f *testing.F) {
	f.Add("_ZN3foo3barEi")
	f.Add("_RINvC1c1fAjj8_RShQTlbENvB2_1gE")
	f.Fuzz(func(t *testing.T, symbol string) {
		if name := Demangle(symbol); len(name) > 2*maxRustLength+len(symbol) {
			t.Errorf("%d bytes", len(name))
		}
	})
}
