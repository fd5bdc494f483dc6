package report

import (
	"slices"
	"strings"
	"unicode"
)

// maxNormalized is how many characters of a normalized message there are at most.
const maxNormalized = 200

// NormalizeMessage returns the text that messages of one error have in common: the first
// line that is not blank, with "#" in place of what differs from one occurrence to the
// next, and "…" in place of what is quoted.
//
//	dial tcp 10.0.0.1:5432: connection refused    dial tcp #: connection refused
//	order 4711 of "ann" not found                 order # of "…" not found
//
// These become "#": numbers with their units, addresses with ports, UUIDs, words that look
// like ids, dates and times, email addresses, and what follows urn:name:. Several of them
// in a row are one, so lists of any length are alike. Words with up to three digits at
// their end, as in x509 or utf8, are kept.
//
// Only the first line counts, as what follows it is often a stack, a document or a list. A
// result has at most 200 characters, and is its own normalized message. The time that it
// takes grows with the length of the message only.
func NormalizeMessage(message string) string {
	n := normalizer{in: []rune(firstLine(message))}
	for n.i < len(n.in) && len(n.out) <= maxNormalized {
		n.next()
	}
	if len(n.out) > maxNormalized {
		n.out = append(n.out[:maxNormalized-1], '…')
	}
	return string(n.out)
}

// firstLine is the first line that is not blank, with single spaces.
func firstLine(text string) string {
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		words := strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return ""
}

// normalizer reads a line from left to right. What it decides of a character depends on
// the end of what it has written, where that matters, and not on what it has read: so it
// decides the same when it reads its own result.
type normalizer struct {
	in  []rune
	i   int // what is read next
	out []rune

	noRun    int     // no address begins before it
	urnEnd   int     // where the "#" of the last URN ends
	unclosed [3]bool // of quotes: nothing that is still to be read closes one
}

// quotes open and close what is quoted.
const quotes = "\"'`"

// next reads a token.
func (n *normalizer) next() {
	c := n.in[n.i]
	if q := strings.IndexRune(quotes, c); q >= 0 {
		if end := n.closing(q, c); end > 0 {
			n.out = append(n.out, c, '…', c)
			n.i = end + 1
			return
		}
	}
	switch {
	case c == '#':
		n.vary(n.i + 1)
	case n.address():
	case inWord(c):
		n.word()
	case c == '@' && n.afterWord() && n.i+1 < len(n.in) && n.in[n.i+1] != '…' && inWord(n.in[n.i+1]):
		n.email()
	default:
		n.keep(n.i + 1)
	}
}

// keep copies what is read up to an index.
func (n *normalizer) keep(end int) {
	n.out = append(n.out, n.in[n.i:end]...)
	n.i = end
}

// vary replaces what is read up to an index by "#", with the signs before it, unless a "#"
// is there with no more than a separator and a space between. What follows a quote stays
// what it is: it decides whether that closes.
func (n *normalizer) vary(end int) {
	n.i = end
	signs := len(n.out)
	for signs > 0 && (n.out[signs-1] == '-' || n.out[signs-1] == '+') {
		signs--
	}
	if !n.after(signs, isWordy) && !n.after(signs, isQuote) {
		n.out = n.out[:signs]
	}
	before := len(n.out)
	if before > 0 && n.out[before-1] == ' ' {
		before--
	}
	if before > 0 && strings.ContainsRune(".,:;/-+", n.out[before-1]) {
		before--
	}
	if before > 0 && before != n.urnEnd && n.out[before-1] == '#' {
		n.out = n.out[:before]
		return
	}
	n.out = append(n.out, '#')
}

// closing returns where the quote is closed that is opened here; 0 when it is none.
func (n *normalizer) closing(q int, c rune) int {
	if n.unclosed[q] || c == '\'' && n.afterWord() { // an apostrophe
		return 0
	}
	for i := n.i + 1; i < len(n.in); i++ {
		switch {
		case c == '"' && n.in[i] == '\\':
			i++
		case n.in[i] == c && (c != '\'' || i+1 == len(n.in) || !isWordy(n.in[i+1])):
			return i
		}
	}
	n.unclosed[q] = true
	return 0
}

// address replaces an address or a time of several parts with colons, such as fe80::1 and
// 12:30:05, and a UUID. It reports false when none begins here.
func (n *normalizer) address() bool {
	c := n.in[n.i]
	if n.afterWord() || !isHex(c) && (c != ':' || n.after(len(n.out), isQuote)) {
		return false
	}
	if end := n.uuid(); end > 0 {
		n.vary(end)
		return true
	}
	if n.i < n.noRun {
		return false
	}
	end, colons, digits := n.i, 0, 0
	for ; end < len(n.in) && (isHex(n.in[end]) || n.in[end] == ':' || n.in[end] == '.'); end++ {
	}
	n.noRun = end
	if end < len(n.in) && isWordy(n.in[end]) {
		return false
	}
	for end > n.i && !isHex(n.in[end-1]) {
		end--
	}
	for _, c := range n.in[n.i:end] {
		if c == ':' {
			colons++
		} else if unicode.IsDigit(c) {
			digits++
		}
	}
	if colons < 2 || digits == 0 {
		return false
	}
	n.vary(end)
	return true
}

// uuid returns where the UUID ends that begins here; 0 when none does.
func (n *normalizer) uuid() int {
	const groups = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	rest := n.in[n.i:]
	if len(rest) < len(groups) || len(rest) > len(groups) && isWordy(rest[len(groups)]) {
		return 0
	}
	for i, c := range rest[:len(groups)] {
		if groups[i] == '-' && c != '-' || groups[i] == 'x' && !isHex(c) {
			return 0
		}
	}
	return n.i + len(groups)
}

// word reads a word.
func (n *normalizer) word() {
	end := n.i
	for end < len(n.in) && inWord(n.in[end]) {
		end++
	}
	word := n.in[n.i:end]
	if varies(word) {
		n.vary(end)
		return
	}
	n.keep(end)
	if len(word) == 3 && strings.EqualFold(string(word), "urn") && end < len(n.in) && n.in[end] == ':' {
		n.urn()
	}
}

// urn reads what follows urn, and replaces what follows the name after it; or both, when the
// name varies too. What comes then is no part of it, however alike it looks.
func (n *normalizer) urn() {
	n.keep(n.i + 1)
	name := n.i
	for name < len(n.in) && inWord(n.in[name]) {
		name++
	}
	end := n.i + 1
	switch {
	case name > n.i && name < len(n.in) && n.in[name] == ':':
		if !varies(n.in[n.i:name]) {
			n.keep(name + 1)
		}
		for end = n.i; end < len(n.in) && n.in[end] != ' ' && !strings.ContainsRune(quotes+",;()[]{}<>…", n.in[end]); end++ {
		}
		for end > n.i && (n.in[end-1] == '.' || n.in[end-1] == ':') {
			end--
		}
	case n.i == len(n.in) || n.in[n.i] != '#': // which stands for both
		return
	}
	if end > n.i {
		n.out = append(n.out, '#')
		n.i, n.urnEnd = end, len(n.out)
	}
}

// email replaces the address of which the @ is read next.
func (n *normalizer) email() {
	inAddress := func(c rune) bool { return isWordy(c) || strings.ContainsRune("._%+-", c) }
	begin := len(n.out)
	for begin > 0 && inAddress(n.out[begin-1]) {
		begin--
	}
	for !isWordy(n.out[begin]) { // it ends with a word: see [normalizer.next]
		begin++
	}
	n.out = n.out[:begin]
	end := n.i + 1
	for end < len(n.in) && n.in[end] != '…' && (inWord(n.in[end]) || strings.ContainsRune("._-", n.in[end])) {
		end++
	}
	n.vary(end)
}

// after reports whether the character before a place in what was written is such a one.
func (n *normalizer) after(place int, is func(rune) bool) bool {
	return place > 0 && is(n.out[place-1])
}

// afterWord reports whether what was written ends within a word.
func (n *normalizer) afterWord() bool { return n.after(len(n.out), isWordy) }

func isQuote(c rune) bool { return strings.ContainsRune(quotes, c) }

// inWord reports whether words consist of such characters. An ellipsis is one, so that a
// word that is cut off is none that ends there.
func inWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '…' }

// isWordy reports whether it is a character of a word, or stands for some.
func isWordy(c rune) bool { return inWord(c) || c == '#' }

func isHex(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// times are words that dates have beside numbers.
var times = strings.Fields("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun")

// varies reports whether a word looks like a number or an id.
func varies(word []rune) bool {
	size, digits, within := 0, 0, false
	upper, lower, hex := false, false, true
	for _, c := range word {
		hex = hex && isHex(c)
		switch {
		case c == '…':
			continue
		case unicode.IsDigit(c):
			digits++
		default:
			within = within || digits > 0
			upper, lower = upper || unicode.IsUpper(c), lower || unicode.IsLower(c)
		}
		size++
	}
	if digits == 0 {
		return size == 3 && slices.Contains(times, string(word))
	}
	return unicode.IsDigit(word[0]) || digits > 3 || size >= 12 || hex && size >= 7 || within && upper && lower
}
