package mutate

import "strings"

// word is a word, a number, a quoted text or a sign of SQL. Comments are none.
type word struct {
	text    string // lower case, but for what is quoted
	at, end int
}

// hole stands in a text for what only the running program puts there.
const hole = '\x00'

func isLetter(c byte) bool {
	return c == '_' || c == hole || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// wordsOf splits a text of either dialect. The quotes around the body of a
// function are a word each: what is between them is SQL as well.
func wordsOf(text string) []word {
	var all []word
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case strings.ContainsRune(" \t\n", rune(c)):
			i++
			continue
		case strings.HasPrefix(text[i:], "--"):
			i += len(text[i:])
			if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
				i = end + n
			}
			continue
		case strings.HasPrefix(text[i:], "$$"):
			end = i + 2
		case c == '\'' || c == '"':
			// A doubled quote is two texts side by side, which is as good.
			if n := strings.IndexByte(text[end:], c); n >= 0 {
				end += n + 1
			} else {
				end = len(text)
			}
		case isLetter(c):
			for end < len(text) && isLetter(text[end]) {
				end++
			}
		}
		w := text[i:end]
		if w[0] != '\'' && w[0] != '"' {
			w = strings.ToLower(w)
		}
		all = append(all, word{w, i, end})
		i = end
	}
	return all
}
