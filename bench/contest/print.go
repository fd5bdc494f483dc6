package contest

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"unicode/utf8"
)

// Print writes a result for people: a row for each entrant, with its medians
// and how many times better the first entrant was, in the median of the rounds
// and from the least to the greatest.
func (r Result) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n\n", r.Bout, r.About)
	r.Figures = slices.DeleteFunc(slices.Clone(r.Figures), func(f Figure) bool { // that nobody has
		return !slices.ContainsFunc(r.Standings, func(s Standing) bool { _, ok := s.Medians[f.Name]; return ok })
	})
	names := 0
	for _, s := range r.Standings {
		names = max(names, utf8.RuneCountInString(s.Name))
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%*s\t", names, "")
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t\t", f.Name)
	}
	fmt.Fprintln(t)
	for i, s := range r.Standings {
		fmt.Fprintf(t, "%-*s\t", names, s.Name) // of one length, since the writer aligns to the right
		for _, f := range r.Figures {
			fmt.Fprintf(t, "%s\t%s\t", s.value(f.Name), s.ratio(f.Name, i == 0))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, s := range r.Standings {
		if s.Settings != "" {
			fmt.Fprintf(w, "%s: %s\n", s.Name, s.Settings)
		}
	}
	if r.Rounds == 1 {
		_, err := fmt.Fprintf(w, "1 round; ×n: %s was n times better\n", r.Standings[0].Name)
		return err
	}
	_, err := fmt.Fprintf(w, "medians of %d rounds; ×n (a–b): %s was n times better in the median of the rounds, and a to b times in single ones\n",
		r.Rounds, r.Standings[0].Name)
	return err
}

func (s Standing) value(figure string) string {
	v, ok := s.Medians[figure]
	if !ok {
		return "-"
	}
	return Number(v)
}

func (s Standing) ratio(figure string, first bool) string {
	v, ok := s.Ratios[figure]
	if !ok || first {
		return ""
	}
	text := "×" + Number(v)
	if len(s.Rounds[figure]) > 1 {
		text += fmt.Sprintf(" (%s–%s)", Number(s.Spread[figure].Least), Number(s.Spread[figure].Greatest))
	}
	return text
}

// Number writes a figure, which is not negative, with about three digits that
// mean something, and its thousands apart.
func Number(v float64) string {
	switch {
	case v >= 999.5:
		return thousands(fmt.Sprintf("%.0f", v))
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// thousands puts a comma before each group of three digits.
func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
