package mutate

import (
	"slices"
	"strings"
)

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

// edit replaces a part of a text.
type edit struct {
	at, end int
	text    string
}

// clause is a guard as it stands in a text, with what takes it out.
type clause struct {
	object string // what is created around it, empty for none
	text   string // the guard: "where p.due <= clock"
	edits  []edit
}

// finder goes through the words of a text.
type finder struct {
	text    string
	words   []word
	object  string
	table   int  // the word at which the table around begins, 0 for none
	index   bool // within an index, whose condition decides only how much is in it
	clauses []clause
}

// clausesOf finds the guards of a text.
func clausesOf(text string) []clause {
	f := &finder{text: text, words: wordsOf(text)}
	for i := range f.words {
		f.look(i)
	}
	return f.clauses
}

// is reports whether words stand at a place.
func (f *finder) is(i int, words ...string) bool {
	for n, w := range words {
		if i+n < 0 || i+n >= len(f.words) || f.words[i+n].text != w {
			return false
		}
	}
	return true
}

func (f *finder) look(i int) {
	switch w := f.words[i]; w.text {
	case "create":
		f.enter(i)
	case ";":
		f.index, f.table = false, 0
	case "where", "having":
		if !f.index {
			f.condition(i+1, w.text, "true or")
		}
	case "on":
		switch {
		case f.is(i+1, "conflict"):
			f.conflict(i)
		case f.joins(i):
			f.condition(i+1, "on", "true or")
		}
	case "for":
		f.lock(i)
	case "lock":
		f.lockTable(i)
	case "if", "elsif", "continue":
		f.branch(i)
	case "check":
		if f.table > 0 && f.is(i+1, "(") {
			f.condition(i+2, "check", "true or")
		}
	case "primary":
		f.key(i)
	case "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared", "pg_advisory_lock":
		f.call(i, "case when false then", "end")
	case "pg_try_advisory_xact_lock", "pg_try_advisory_lock":
		f.call(i, "(true or", ")")
	}
}

// enter notes what is created.
func (f *finder) enter(i int) {
	n := i + 1
	unique := f.is(n, "unique")
	if unique {
		n++
	}
	if n+1 >= len(f.words) {
		return
	}
	kind := f.words[n].text
	name := n + 1
	if f.is(name+1, ".") {
		name += 2
	}
	f.index = kind == "index"
	f.table = 0
	if kind == "table" || kind == "domain" {
		f.table = i + 1
	}
	if name < len(f.words) && slices.Contains([]string{"table", "domain", "index", "view", "function"}, kind) {
		f.object = f.words[name].text
	}
	if unique {
		f.add("unique", i, f.until(i, ";"), edit{f.words[i+1].at, f.words[i+1].end, ""})
	}
}

// add notes a guard that reaches from one word to before another.
func (f *finder) add(kind string, from, to int, edits ...edit) {
	var b strings.Builder
	b.WriteString(kind)
	last := -1
	for _, w := range f.words[from:to] {
		if w.at > last {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ReplaceAll(f.text[w.at:w.end], string(hole), "…"))
		last = w.end
	}
	f.clauses = append(f.clauses, clause{f.object, strings.TrimSpace(b.String()), edits})
}

// ends are the words that end a condition which stands beside them.
var ends = []string{
	";", "$$", ",", "group", "order", "limit", "offset", "for", "returning", "union", "except", "intersect", "having", "window", "into", "loop",
	"then", "left", "right", "inner", "cross", "join", "full", "where", "on", "do", "set",
}

// span is the end of an expression: the first of the words that ends it, or the
// parenthesis around it.
func (f *finder) span(i int, ends []string) int {
	depth := 0
	for ; i < len(f.words); i++ {
		switch w := f.words[i].text; {
		case w == "(" || w == "[" || w == "case":
			depth++
		case depth == 0 && (w == ")" || w == "]" || w == "end"):
			return i
		case w == ")" || w == "]" || w == "end":
			depth--
		case depth == 0 && slices.Contains(ends, w) && !(w == "left" && f.is(i+1, "(")):
			return i
		}
	}
	return i
}

func (f *finder) until(i int, ends ...string) int { return f.span(i, ends) }

// split are the parts of an expression between a word, each as its first word
// and the one after its last.
func (f *finder) split(from, to int, by string) [][2]int {
	var parts [][2]int
	depth, between := 0, false
	begin := from
	for i := from; i < to; i++ {
		switch w := f.words[i].text; {
		case w == "(" || w == "[" || w == "case":
			depth++
		case w == ")" || w == "]" || w == "end":
			depth--
		case depth > 0:
		case w == "between":
			between = true
		case w == "and" && between:
			between = false
		case w == by:
			parts = append(parts, [2]int{begin, i})
			begin = i + 1
		}
	}
	return append(parts, [2]int{begin, to})
}

// condition takes each part of a condition out by itself: of what must hold
// together each is made true, of alternatives each false.
func (f *finder) condition(from int, kind, always string) {
	to := f.span(from, ends)
	if to <= from || f.is(from, "true") && to == from+1 {
		return
	}
	alternatives := f.split(from, to, "or")
	if len(alternatives) > 1 {
		f.wrap(kind, from, to, always)
	}
	for _, a := range alternatives {
		parts := f.split(a[0], a[1], "and")
		if len(alternatives) > 1 {
			f.wrap(kind+" … or", a[0], a[1], "false and")
		}
		if len(alternatives) > 1 && len(parts) == 1 {
			continue // as taking out all of it
		}
		for _, p := range parts {
			f.wrap(kind, p[0], p[1], always)
		}
	}
}

// wrap keeps the text of a condition, so that its parameters keep their types,
// beside a constant that decides.
func (f *finder) wrap(kind string, from, to int, constant string) {
	if to <= from || to-from == 1 && f.words[from].text == string(hole) {
		return
	}
	begin, end := f.words[from].at, f.words[to-1].end
	f.add(kind, from, to, edit{begin, begin, "(" + constant + " ("}, edit{end, end, "))"})
}

// joins reports whether an "on" says how tables are joined.
func (f *finder) joins(i int) bool {
	for depth := 0; i > 0; {
		i--
		switch w := f.words[i].text; {
		case w == ")":
			depth++
		case w == "(" && depth == 0:
			return false
		case w == "(":
			depth--
		case depth > 0:
		case w == "join":
			return true
		case w == "on" || w == ";" || w == "where" || w == "from" || w == "create":
			return false
		}
	}
	return false
}

// conflict takes out what is done when a row is there already.
func (f *finder) conflict(i int) {
	to := f.until(i, "do")
	if f.is(to, "do", "nothing") {
		to += 2
	} else {
		to = min(f.until(to+1, ";", "returning", "$$"), len(f.words))
	}
	f.add("", i, to, edit{f.words[i].at, f.words[to-1].end, ""})
}

// lock takes out the lock on rows that are read, and whether it waits.
func (f *finder) lock(i int) {
	to := i + 1
	for f.is(to, "no") || f.is(to, "key") {
		to++
	}
	if !f.is(to, "update") && !f.is(to, "share") {
		return
	}
	to++
	if f.is(to, "of") {
		to += 2
	}
	end := to
	if f.is(to, "skip", "locked") {
		end += 2
		f.add("", to, end, edit{f.words[to].at, f.words[end-1].end, ""})
	}
	f.add("", i, end, edit{f.words[i].at, f.words[end-1].end, ""})
}

// lockTable takes out the lock on whole tables.
func (f *finder) lockTable(i int) {
	if !f.is(i+1, "table") {
		return
	}
	to := f.until(i+1, ";")
	f.add("", i, to, edit{f.words[i].at, f.words[to-1].end, "select 1"})
}

// branch takes out what a function does under a condition.
func (f *finder) branch(i int) {
	from, to := i+1, 0
	kind := f.words[i].text
	if kind == "continue" {
		from++
		kind += " when"
		if !f.is(i+1, "when") {
			return
		}
		to = f.until(from, ";")
	} else if to = f.until(from, "then", ";"); f.is(i-1, "end") || !f.is(to, "then") {
		return
	}
	f.wrap(kind, from, to, "false and")
}

// key takes out what makes rows unique.
func (f *finder) key(i int) {
	if f.table == 0 || !f.is(i+1, "key") {
		return
	}
	to, instead := i+2, "not null"
	if f.is(to, "(") {
		to, instead = f.until(to+1)+1, "check (true)"
	}
	if f.is(to, "autoincrement") {
		to++
	}
	edits := []edit{{f.words[i].at, f.words[to-1].end, instead}}
	// A table without row numbers cannot be without a key.
	for n := to; n < len(f.words) && f.words[n].text != ";"; n++ {
		if f.is(n, ",", "without", "rowid") {
			edits = append(edits, edit{f.words[n].at, f.words[n+2].end, ""})
		}
	}
	f.add("", i, to, edits...)
}

// call leaves a function uncalled.
func (f *finder) call(i int, before, behind string) {
	if !f.is(i+1, "(") {
		return
	}
	to := f.until(i+2) + 1
	if to > len(f.words) {
		return
	}
	end := f.words[to-1].end
	f.add("", i, to, edit{f.words[i].at, f.words[i].at, "(" + before + " "}, edit{end, end, " " + behind + ")"})
}
