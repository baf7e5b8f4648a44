package gdbserver

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// answerQuery answers packets that ask for or set something general.
func (s *Session) answerQuery(p string) string {
	name, rest, _ := strings.Cut(p, ":")
	switch name {
	case "qSupported":
		return fmt.Sprintf("PacketSize=%x;QStartNoAckMode+;qXfer:features:read+;qXfer:threads:read+;qXfer:auxv:read+;"+
			"qXfer:exec-file:read+;swbreak+;hwbreak+;exec-events+;ReverseStep+;ReverseContinue+;vContSupported+", maxPacket)
	case "QStartNoAckMode", "qSymbol":
		return "OK"
	case "qAttached":
		return "1"
	case "qC":
		return fmt.Sprintf("QC%x", s.target.Current().Thread)
	case "qfThreadInfo":
		return s.threadList()
	case "qsThreadInfo":
		return "l"
	case "qXfer":
		return s.readObject(rest)
	}
	if id, ok := strings.CutPrefix(p, "qThreadExtraInfo,"); ok {
		return s.threadName(id)
	}
	return ""
}

func (s *Session) threadList() string {
	text := "m"
	for i, t := range s.target.Threads() {
		if i > 0 {
			text += ","
		}
		text += strconv.FormatInt(int64(t.ID), 16)
	}
	return text
}

func (s *Session) threadName(text string) string {
	id, ok := parseThread(text)
	for _, t := range s.target.Threads() {
		if ok && t.ID == id {
			return hex.EncodeToString([]byte(t.Name))
		}
	}
	return failure
}

// readObject answers qXfer: an object, "read", an annex, and a part of it.
func (s *Session) readObject(rest string) string {
	words := strings.Split(rest, ":")
	if len(words) != 4 || words[1] != "read" {
		return ""
	}
	at, size, ok := parsePair(words[3])
	if !ok {
		return failure
	}
	object, ok := s.findObject(words[0], words[2])
	if !ok {
		return ""
	}
	if at >= uint64(len(object)) {
		return "l"
	}
	object = object[at:]
	if uint64(len(object)) > min(size, maxPacket/4) {
		return "m" + object[:min(size, maxPacket/4)]
	}
	return "l" + object
}

func (s *Session) findObject(name, annex string) (string, bool) {
	switch {
	case name == "features" && annex == "target.xml":
		return targetDescription(s.target.HasAVX()), true
	case name == "threads" && annex == "":
		return s.threadXML(), true
	case name == "auxv":
		return string(s.target.Auxv()), true
	case name == "exec-file":
		return s.target.Program(), true
	}
	return "", false
}

// threadXML is the thread list document; names are escaped.
func (s *Session) threadXML() string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	text := `<?xml version="1.0"?><threads>`
	for _, t := range s.target.Threads() {
		text += fmt.Sprintf(`<thread id="%x" name="%s"/>`, t.ID, escape.Replace(t.Name))
	}
	return text + "</threads>"
}
