// Package contest lets programs do the same work in turns and compares them.
//
// A [Bout] is one piece of work with everyone who does it. It is held in
// rounds: in each, every [Entrant] does the work once, from an empty database,
// and nobody else works meanwhile. Who goes first moves on by one from round to
// round, so that what the machine does beside is felt by all.
//
//	round 1   stint   river   rows
//	round 2   river   rows    stint
//	round 3   rows    stint   river
//
// What counts is a [Standing]: the median of an entrant's figures, and how many
// times better the first entrant was, as the median of the ratios within each
// round, with the least and the greatest of them. Neighbours in time are compared,
// not the best moment of one with the worst of another.
//
// The package knows nothing of databases. [Queue] is the role that a job queue
// plays in it, and [Burn] the work that all of them can do.
package contest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Figure is one of the numbers that a bout is about.
type Figure struct {
	Name        string `json:"name"` // with its unit: "work/s"
	LessIsMore  bool   `json:"less_is_more,omitempty"`
	Description string `json:"description,omitempty"`
}

// Figures are what an entrant's turn brought, by name. A figure that it does
// not have is missing.
type Figures map[string]float64

// Entrant is one who takes part.
type Entrant struct {
	Name     string
	Settings string // what a reader must know to do the same

	// Turn does the work once and returns its figures. It leaves nothing
	// behind.
	Turn func(ctx context.Context) (Figures, error)
}

// Jointly makes n turns of one measurement that brings the figures of n entrants
// at once: whichever has its turn first in a round measures.
func Jointly(n int, measure func(ctx context.Context) ([]Figures, error)) []func(context.Context) (Figures, error) {
	kept := make([]Figures, n)
	turns := make([]func(context.Context) (Figures, error), n)
	for i := range turns {
		turns[i] = func(ctx context.Context) (f Figures, err error) {
			if kept[i] == nil {
				all, err := measure(ctx)
				if err != nil {
					return nil, err
				}
				copy(kept, all)
			}
			f, kept[i] = kept[i], nil
			return f, nil
		}
	}
	return turns
}

// Bout is one piece of work and who does it. The first entrant is the one that
// the others are compared with.
type Bout struct {
	Name     string
	About    string // the work, in a sentence
	Figures  []Figure
	Entrants []Entrant
}

// Result is what came of a bout.
type Result struct {
	Bout      string     `json:"bout"`
	About     string     `json:"about"`
	Rounds    int        `json:"rounds"`
	Figures   []Figure   `json:"figures"`
	Standings []Standing `json:"standings"` // in the order of the entrants
}

// Standing is what came of one entrant.
type Standing struct {
	Name     string               `json:"name"`
	Settings string               `json:"settings"`
	Medians  Figures              `json:"medians"`
	Ratios   Figures              `json:"ratios"` // how many times better the first entrant was; 1 for itself
	Spread   map[string]Spread    `json:"spread"` // of the ratios of the rounds
	Rounds   map[string][]float64 `json:"rounds"` // the figures of each round
}

// Spread is how far some numbers lie apart.
type Spread struct {
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
}

// Against keeps the first entrant and those others whose names match. It is an
// error when nobody does.
func (b Bout) Against(names *regexp.Regexp) (Bout, error) {
	var all []string
	kept := b.Entrants[:1:1]
	for _, e := range b.Entrants[1:] {
		all = append(all, strconv.Quote(e.Name))
		if names.MatchString(e.Name) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 1 {
		return b, fmt.Errorf("%s: nobody is named like %s; there are %s", b.Name, names, strings.Join(all, ", "))
	}
	b.Entrants = kept
	return b, nil
}

// Hold holds a bout. Tell is called before each turn, and may be nil. The first
// turn that fails ends it.
func (b Bout) Hold(ctx context.Context, rounds int, tell func(round int, entrant string)) (Result, error) {
	r := Result{Bout: b.Name, About: b.About, Rounds: rounds, Figures: b.Figures}
	for _, e := range b.Entrants {
		r.Standings = append(r.Standings, Standing{Name: e.Name, Settings: e.Settings, Rounds: map[string][]float64{}})
	}
	for round := range rounds {
		for turn := range b.Entrants {
			i := (round + turn) % len(b.Entrants)
			if tell != nil {
				tell(round+1, b.Entrants[i].Name)
			}
			figures, err := b.Entrants[i].Turn(ctx)
			if err != nil {
				return r, fmt.Errorf("%s, round %d: %s: %w", b.Name, round+1, b.Entrants[i].Name, err)
			}
			for name, v := range figures {
				r.Standings[i].Rounds[name] = append(r.Standings[i].Rounds[name], v)
			}
		}
	}
	r.sumUp()
	return r, nil
}

// sumUp works out medians and ratios.
func (r *Result) sumUp() {
	for i := range r.Standings {
		s := &r.Standings[i]
		s.Medians, s.Ratios, s.Spread = Figures{}, Figures{}, map[string]Spread{}
		for _, f := range r.Figures {
			mine, first := s.Rounds[f.Name], r.Standings[0].Rounds[f.Name]
			if len(mine) == 0 {
				continue
			}
			s.Medians[f.Name] = Median(mine)
			if len(mine) == len(first) {
				all := ratios(f, first, mine)
				s.Ratios[f.Name], s.Spread[f.Name] = Median(all), Spread{slices.Min(all), slices.Max(all)}
			}
		}
	}
}

// ratios says for each round how many times better the first was.
func ratios(f Figure, first, other []float64) []float64 {
	all := make([]float64, len(first))
	for i := range first {
		better, worse := first[i], other[i]
		if f.LessIsMore {
			better, worse = worse, better
		}
		if worse != 0 { // nothing is compared with nothing: that is 0
			all[i] = better / worse
		}
	}
	return all
}

// Median is the middle one of some numbers, or the mean of the two in the
// middle; of none it is 0.
func Median(all []float64) float64 {
	n := len(all)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
