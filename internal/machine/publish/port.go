package publish

import (
	"net/netip"
	"strconv"
	"strings"
)

// Port is a port of the guest that clients on the host can connect to, in text
// HOSTPORT:GUESTPORT or HOSTADDR:HOSTPORT:GUESTPORT.
type Port struct {
	// Addr is the address of the host; the zero value means the loopback addresses of IPv4 and
	// IPv6.
	Addr netip.Addr
	// Host is the host's port, 0 for a free one, and Guest the guest's.
	Host, Guest uint16
}

// formError describes the allowed form; the caller puts the option and its value before it.
type formError struct{ suggestion string }

func (e formError) Error() string {
	text := "HOSTPORT:GUESTPORT or HOSTADDR:HOSTPORT:GUESTPORT, with ports up to 65535 and an IPv6 address in brackets"
	if e.suggestion != "" {
		text += "; did you mean " + e.suggestion + "?"
	}
	return text
}

// Text lists ports.
func Text(list []Port) string {
	var texts []string
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}

// UnmarshalText reads the text form.
func (p *Port) UnmarshalText(text []byte) error {
	if parsed, ok := parsePort(string(text)); ok {
		*p = parsed
		return nil
	}
	return formError{suggestForm(string(text))}
}

func parsePort(text string) (p Port, ok bool) {
	rest, guest, ok := cutLast(text)
	if !ok {
		return Port{}, false
	}
	if p.Guest, ok = parseNumber(guest); !ok || p.Guest == 0 {
		return Port{}, false
	}
	addr, host, named := cutLast(rest)
	if !named {
		host = rest
	}
	if p.Host, ok = parseNumber(host); !ok {
		return Port{}, false
	}
	if named {
		p.Addr, ok = parseAddress(addr)
	}
	return p, ok
}

// cutLast cuts at the last colon.
func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

func parseNumber(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil
}

// parseAddress reads an address of IPv4, or one of IPv6 in brackets.
func parseAddress(text string) (netip.Addr, bool) {
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(inner)
	return addr, err == nil && opened == closed && opened == addr.Is6()
}

// suggestForm returns an allowed text that is near one that is not allowed, or nothing.
func suggestForm(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), "/tcp")
	for _, near := range []string{
		text,
		text + ":" + text,
		strings.ReplaceAll(text, "localhost", "127.0.0.1"),
		strings.NewReplacer("/", ":", "=", ":", ",", ":", "->", ":").Replace(text),
		bracketAddress(text),
	} {
		if p, ok := parsePort(near); ok {
			return p.String()
		}
	}
	return ""
}

// bracketAddress puts all but the last two numbers into brackets.
func bracketAddress(text string) string {
	rest, guest, _ := cutLast(text)
	addr, host, _ := cutLast(rest)
	return "[" + addr + "]:" + host + ":" + guest
}

// MarshalText gives the text form.
func (p Port) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Port) String() string {
	numbers := strconv.Itoa(int(p.Host)) + ":" + strconv.Itoa(int(p.Guest))
	switch {
	case !p.Addr.IsValid():
		return numbers
	case p.Addr.Is6():
		return "[" + p.Addr.String() + "]:" + numbers
	}
	return p.Addr.String() + ":" + numbers
}

// addresses are the addresses of the host that clients connect to.
func (p Port) addresses() []netip.Addr {
	if p.Addr.IsValid() {
		return []netip.Addr{p.Addr}
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}
