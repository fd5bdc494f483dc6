package valid

import (
	"strings"
	"unicode/utf8"
)

// CleanText makes any text storable: valid UTF-8 without NUL, of at most max
// bytes. Of a longer one the end is kept, since that is where output says what
// went wrong.
func CleanText(s string, max int) string {
	s = Clean(s)
	if len(s) <= max {
		return s
	}
	if max <= len(cutMark) {
		return ""
	}
	cut := len(s) - max + len(cutMark)
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return cutMark + s[cut:]
}

// CleanHead is [CleanText] for texts that begin with what matters, such as a
// stack: of a longer one the beginning is kept.
func CleanHead(s string, max int) string {
	s = Clean(s)
	if len(s) <= max {
		return s
	}
	if max <= len(cutMark) {
		return ""
	}
	cut := max - len(cutMark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + cutMark
}

const cutMark = "[cut]"

// Clean makes any text storable, however long: bytes that no database keeps are
// replaced.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// CleanCut is [Clean] for a text that was cut off somewhere: a character at its
// end that was cut in two is dropped.
func CleanCut(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if c := s[len(s)-i:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRuneInString(c) {
				s = s[:len(s)-i]
			}
			break
		}
	}
	return Clean(s)
}
