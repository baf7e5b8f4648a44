package job

import (
	"math/bits"
	"strconv"
	"strings"
)

// Size is a number of bytes, in text with an optional unit: 4096, 512M, 4GiB.
type Size uint64

// UnmarshalText reads the text form; K, KiB and KB all mean 1024 bytes.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "KMGTiBkmgtb")
	unit := strings.ToUpper(string(text)[len(digits):])
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "I")
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
	by, known := shift[unit]
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || !known || bits.Len64(n)+int(by) > 64 {
		return errSizeForm
	}
	*s = Size(n << by)
	return nil
}

// MarshalText gives the text form.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Size) String() string {
	units := []string{"", "K", "M", "G", "T"}
	n := uint64(s)
	i := 0
	for ; n != 0 && n%1024 == 0 && i+1 < len(units); i++ {
		n /= 1024
	}
	return strconv.FormatUint(n, 10) + units[i]
}
