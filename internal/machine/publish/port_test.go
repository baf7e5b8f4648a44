package publish

import (
	"strings"
	"testing"
)

func TestPortText(t *testing.T) {
	for text, want := range map[string]string{
		"8080:80": "", "0:80": "", "127.0.0.1:8080:80": "", "[::1]:8080:80": "", "0.0.0.0:0:1": "", "65535:65535": "",
		"80":                "80:80",
		"8080:80/tcp":       "8080:80",
		"localhost:8080:80": "127.0.0.1:8080:80",
		"::1:8080:80":       "[::1]:8080:80",
		"8080/80":           "8080:80",
		"8080->80":          "8080:80",
		" 8080:80":          "8080:80",
		"8080:0":            "-", "65536:80": "-", "": "-", ":": "-", "a:b": "-", "1.2.3:80:80": "-", "[127.0.0.1]:80:80": "-", "-1:80": "-",
	} {
		var p Port
		err := p.UnmarshalText([]byte(text))
		switch {
		case want == "" && (err != nil || p.String() != text):
			t.Errorf("%q is read as %v, %v", text, p, err)
		case want == "-" && (err == nil || strings.Contains(err.Error(), "did you mean")):
			t.Errorf("%q: %v, %v", text, p, err)
		case len(want) > 1 && (err == nil || !strings.HasSuffix(err.Error(), "did you mean "+want+"?")):
			t.Errorf("%q: %v, %v, want the suggestion %s", text, p, err, want)
		}
	}
}
