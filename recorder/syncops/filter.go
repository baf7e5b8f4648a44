package syncops

import "github.com/heddle-dmt/heddle/emu/arch"

// filter excludes most addresses that are not in a set, fast.
type filter [64]uint64

func bitOf(a arch.Addr) (word, bit uint64) {
	h := uint64(a) * 0x9e3779b97f4a7c15
	return h >> 58, h >> 52 & 63
}

func (f *filter) addAddress(a arch.Addr) {
	word, bit := bitOf(a)
	f[word] |= 1 << bit
}

func (f *filter) mayHave(a arch.Addr) bool {
	word, bit := bitOf(a)
	return f[word]>>bit&1 != 0
}
