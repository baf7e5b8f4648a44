// Package jsontext has strings in JSON that need not be UTF-8, as names of files and arguments of programs.
package jsontext

import (
	"encoding/json"
	"unicode/utf8"
)

// Text is a string in JSON, as Base64 if it is not UTF-8.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string][]byte{"base64": []byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var other map[string][]byte
	err := json.Unmarshal(b, &other)
	*t = Text(other["base64"])
	return err
}

// Of converts strings.
func Of(list []string) []Text {
	out := make([]Text, len(list))
	for i, s := range list {
		out[i] = Text(s)
	}
	return out
}

// Plain is the inverse of Of.
func Plain(list []Text) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// Mount is a mount.
type Mount struct {
	Host     Text `json:"host"`
	Guest    Text `json:"guest"`
	Writable bool `json:"writable"`
}

// Stdin describes standard input: "none", "stream" (its bytes are elsewhere) or "file": a regular file, by the name that the
// guest can see, where it is, and the position in it.
type Stdin struct {
	Kind   string `json:"kind"`
	Name   Text   `json:"name,omitempty"`
	Path   Text   `json:"path,omitempty"`
	Offset int64  `json:"offset,omitempty"`
}
