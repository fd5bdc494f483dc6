package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomGraph has nodes in layers, and edges from lower to higher ones.
func randomGraph(random *rand.Rand) Graph {
	g := Graph{Title: "any", Nodes: make([]Node, 1+random.IntN(120))}
	for i := range g.Nodes {
		g.Nodes[i] = Node{Name: "n", State: "completed", Shape: Shape(random.IntN(4)), Layer: 7 + random.IntN(1+random.IntN(40))}
	}
	for range random.IntN(300) {
		from, to := random.IntN(len(g.Nodes)), random.IntN(len(g.Nodes))
		if g.Nodes[from].Layer < g.Nodes[to].Layer {
			g.Edges = append(g.Edges, Edge{From: from, To: to})
		}
	}
	return g
}

func TestNoEdgePointsBackwardsAndNoTwoNodesOverlap(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		g := randomGraph(random)
		a := g.arrange()
		for i := range a.spots {
			s := &a.spots[i]
			if x, y := left(s.column), s.y; x < 0 || x+nodeWidth > a.width || y-s.height()/2 < 0 || y+s.height()/2 > a.height {
				t.Fatalf("seed %d: spot %d is at %v, %v outside of %v, %v", seed, i, x, y, a.width, a.height)
			}
			for k := range i {
				o := &a.spots[k]
				if o.column == s.column && max(o.y, s.y)-min(o.y, s.y) < (o.height()+s.height())/2 {
					t.Fatalf("seed %d: the spots %d and %d overlap", seed, i, k)
				}
			}
		}
		for i, way := range a.ways {
			for k := range way[1:] {
				if a.spots[way[k]].column >= a.spots[way[k+1]].column {
					t.Fatalf("seed %d: the edge %d goes from column %d to %d", seed, i, a.spots[way[k]].column, a.spots[way[k+1]].column)
				}
			}
			if way[0] != g.Edges[i].From || way[len(way)-1] != g.Edges[i].To {
				t.Fatalf("seed %d: the edge %d leads elsewhere", seed, i)
			}
		}
	}
}

func TestAnEdgeGoesAroundTheNodesThatAreOnItsWay(t *testing.T) {
	g := Graph{Nodes: []Node{{Name: "a", Layer: 0}, {Name: "b", Layer: 1}, {Name: "c", Layer: 2}}, Edges: []Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 0, To: 2}}}
	a := g.arrange()
	if len(a.ways[2]) != 3 || len(a.columns[1]) != 2 {
		t.Errorf("the ways are %v", a.ways)
	}
	long := Graph{Nodes: []Node{{Name: "a"}, {Name: "z", Layer: 1}}}
	for i := range mostTold { // they go through more columns than there is room for
		long.Nodes = append(long.Nodes, Node{Layer: 2 + i})
		long.Edges = append(long.Edges, Edge{From: 0, To: len(long.Nodes) - 1})
	}
	if n := len(long.arrange().spots) - len(long.Nodes); n == 0 || n > mostWays {
		t.Errorf("edges have %d places", n)
	}
}

func TestEdgesAreToldApartUnlessThereAreTooMany(t *testing.T) {
	g := Graph{Nodes: []Node{{Name: "a"}, {Name: "b", Layer: 1}, {Name: "c", Layer: 2}}}
	for i := range mostTold {
		g.Edges = append(g.Edges, Edge{From: 0, To: 1 + i%2, Class: []Class{OK, Bad, Muted}[i%3], Line: []Line{Solid, Dots}[i%5/4], Note: "that a ends"})
	}
	if told := strings.Count(g.SVG(), "<title>that a ends</title>"); told != mostTold {
		t.Errorf("%d of %d edges are told apart", told, mostTold)
	}
	g.Edges = append(g.Edges, g.Edges[0])
	svg := g.SVG()
	if strokes := strings.Count(svg, `class="line"`); strokes != 3*2 || strings.Contains(svg, "that a ends") {
		t.Errorf("what looks the same is %d strokes, want one for each of six looks", strokes)
	}
	if strings.Contains(svg, "c28 ") || strings.Contains(svg, "h176") {
		t.Error("edges of a crowded graph are not straight")
	}
	if lines := strings.Count(svg, "M182 "); lines != len(g.Edges) {
		t.Errorf("%d lines begin at the first node, want %d", lines, len(g.Edges))
	}
}

func TestFewEdgesCross(t *testing.T) {
	// Two chains whose nodes come crossed.
	g := Graph{Nodes: []Node{{Layer: 0}, {Layer: 0}, {Layer: 1}, {Layer: 1}}, Edges: []Edge{{From: 0, To: 3}, {From: 1, To: 2}}}
	a := g.arrange()
	if (a.spots[0].y < a.spots[1].y) != (a.spots[3].y < a.spots[2].y) {
		t.Error("two edges cross that need not")
	}
}

func TestAGraphIsDrawnWhateverIsInIt(t *testing.T) {
	name := `<b>"&'` + "\x00\xff"
	g := Graph{Title: name, Nodes: []Node{{Name: name, State: "failed", Says: name, Note: name, Link: `/jobs/"1`}, {Name: name, Layer: 1}}, Edges: []Edge{{From: 0, To: 1, Note: name, Class: Bad}, {From: 1, To: 0, Class: OK, Line: Dots}}}
	for _, g := range []Graph{g, {Title: name}} {
		d := xml.NewDecoder(strings.NewReader(g.Figure()))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, g.Figure())
			}
		}
	}
}
