package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Graph shows things that need each other, from left to right.
type Graph struct {
	Title string
	Nodes []Node
	Edges []Edge
}

// Node is one of the things.
type Node struct {
	Name  string
	State string // of a job: its word is shown, and the style sheet colours it
	Says  string // more, in place of the state's word; empty for nothing
	Note  string // more still, for who points at it
	Link  string // where it leads; empty for nowhere
	Shape Shape
	Bold  bool

	// Layer is the column, counted from anywhere. What is needed should be in a lower one.
	Layer int
}

// Shape tells sorts of nodes apart.
type Shape int

// The shapes.
const (
	Single Shape = iota
	Double       // it has something in it
	Stack        // several
	Dashed       // it is of somewhere else
)

// Edge leads from what is needed to what needs it. From and To are places among the nodes.
type Edge struct {
	From, To int
	Line     Line
	Class    Class  // OK, Bad with a cross, or Muted
	Note     string // for who points at it
}

// Line tells sorts of edges apart.
type Line string

// The lines.
const (
	Solid  Line = ""
	Dashes Line = "dashes"
	Dots   Line = "dots"
)

// The measures of a graph in pixels.
const (
	nodeWidth  = 176
	nodeHeight = 44
	columnGap  = 56
	rowGap     = 14
	wayHeight  = 6 // of an edge on its way through a column
	graphEdge  = 6 // around all

	// mostWays is how many places edges get in the columns that they go through. Others go straight.
	mostWays = 2000

	// mostTold is how many edges are told apart. Of more, all go straight, and those that look the same are one stroke:
	// nobody finds one of them with a pointer, and the table says what each node needs.
	mostTold = 300

	sweeps = 6
)

// spot is a place in a column: of a node, or of an edge that goes through.
type spot struct {
	node   int // -1 for none
	edge   int
	column int
	y      float64 // of its middle
	before []int   // spots that lead to it
	after  []int   // and that it leads to
	rank   float64
}

// arranged is a graph whose nodes have places.
type arranged struct {
	spots         []spot  // first those of the nodes, in their order
	ways          [][]int // of each edge, all spots that it goes by
	columns       [][]int
	width, height float64
}

func (s *spot) height() float64 {
	if s.node < 0 {
		return wayHeight
	}
	return nodeHeight
}

func left(column int) float64 { return graphEdge + float64(column)*(nodeWidth+columnGap) }

// arrange gives nodes places: a column for each layer, in which they are sorted so that few edges cross.
func (c Graph) arrange() *arranged {
	a := &arranged{}
	var layers []int
	for _, n := range c.Nodes {
		layers = append(layers, n.Layer)
	}
	slices.Sort(layers)
	layers = slices.Compact(layers)
	a.columns = make([][]int, len(layers))
	for i, n := range c.Nodes {
		column, _ := slices.BinarySearch(layers, n.Layer)
		a.put(spot{node: i, edge: -1, column: column})
	}
	free := mostWays
	if c.crowded() {
		free = 0
	}
	for i, e := range c.Edges {
		way, from, to := []int{e.From}, a.spots[e.From].column, a.spots[e.To].column
		if n := to - from - 1; n > 0 && n <= free {
			free -= n
			for column := from + 1; column < to; column++ {
				way = append(way, a.put(spot{node: -1, edge: i, column: column}))
			}
		}
		way = append(way, e.To)
		for k := range way[1:] {
			a.spots[way[k]].after = append(a.spots[way[k]].after, way[k+1])
			a.spots[way[k+1]].before = append(a.spots[way[k+1]].before, way[k])
		}
		a.ways = append(a.ways, way)
	}
	a.stack()
	for range sweeps {
		for _, column := range a.columns {
			a.sort(column, func(s *spot) []int { return s.before })
		}
		for _, column := range slices.Backward(a.columns) {
			a.sort(column, func(s *spot) []int { return s.after })
		}
	}
	a.width = left(len(a.columns)) - columnGap + graphEdge
	return a
}

func (a *arranged) put(s spot) int {
	a.spots = append(a.spots, s)
	a.columns[s.column] = append(a.columns[s.column], len(a.spots)-1)
	return len(a.spots) - 1
}

// sort sorts a column by the middle of what each spot is connected to on a side.
func (a *arranged) sort(column []int, side func(*spot) []int) {
	for _, i := range column {
		s := &a.spots[i]
		s.rank = s.y
		if others := side(s); len(others) > 0 {
			s.rank = 0
			for _, o := range others {
				s.rank += a.spots[o].y / float64(len(others))
			}
		}
	}
	slices.SortStableFunc(column, func(x, y int) int { return cmp.Compare(a.spots[x].rank, a.spots[y].rank) })
	a.stack()
}

// stack puts the spots of each column below each other, in its middle.
func (a *arranged) stack() {
	height := func(column []int) (sum float64) {
		for _, i := range column {
			sum += a.spots[i].height() + rowGap
		}
		return sum - rowGap
	}
	a.height = 0
	for _, column := range a.columns {
		a.height = max(a.height, height(column)+2*graphEdge)
	}
	for _, column := range a.columns {
		y := (a.height - height(column)) / 2
		for _, i := range column {
			s := &a.spots[i]
			s.y = y + s.height()/2
			y += s.height() + rowGap
		}
	}
}

// SVG is the picture. It is as large as it needs to be.
func (c Graph) SVG() string {
	var m markup
	a := c.arrange()
	var says []string
	for _, n := range c.Nodes {
		says = append(says, n.Name+" "+cmp.Or(n.Says, n.State))
	}
	if len(says) == 0 {
		says = []string{"there is nothing"}
		a.width, a.height = 4*nodeWidth, nodeHeight
	}
	m.begin("svg", "class", "graph", "role", "group", "aria-label", c.Title+": "+some(says), "width", a.width, "height", a.height)
	for _, edges := range c.strokes() {
		c.stroke(&m, a, edges)
	}
	for i, n := range c.Nodes {
		s := &a.spots[i]
		n.draw(&m, left(s.column), s.y-nodeHeight/2)
	}
	if len(c.Nodes) == 0 {
		m.nothing("there is nothing", nodeHeight/2)
	}
	m.end("svg")
	return m.String()
}

// strokes are the edges that are drawn together.
func (c Graph) strokes() (all [][]int) {
	like := map[string]int{}
	for i, e := range c.Edges {
		k, ok := like[e.look()]
		if !ok || !c.crowded() {
			k, all = len(all), append(all, nil)
			like[e.look()] = k
		}
		all[k] = append(all[k], i)
	}
	return all
}

// crowded reports whether there are too many edges to tell one from another.
func (c Graph) crowded() bool { return len(c.Edges) > mostTold }

func (e Edge) look() string {
	return strings.TrimSpace("edge " + string(e.Class) + " " + string(e.Line))
}

// stroke draws edges that look the same.
func (c Graph) stroke(m *markup, a *arranged, edges []int) {
	lines, tips, tipped := &strings.Builder{}, &strings.Builder{}, map[int]bool{}
	for _, i := range edges {
		a.line(lines, a.ways[i], c.crowded())
		if to := c.Edges[i].To; !tipped[to] {
			tipped[to] = true
			a.tip(tips, c.Edges[i].Class, &a.spots[to])
		}
	}
	m.begin("g", "class", c.Edges[edges[0]].look())
	if !c.crowded() {
		m.element("title", c.Edges[edges[0]].Note)
	}
	m.element("path", "", "class", "line", "d", lines.String(), "fill", "none")
	m.element("path", "", "class", "tip", "d", tips.String())
	m.end("g")
}

// line draws an edge from spot to spot, as curves or straight. Its coordinates are relative, so that most of it is the
// same for many edges, and is compressed well.
func (a *arranged) line(path *strings.Builder, way []int, straight bool) {
	x, y := left(a.spots[way[0]].column)+nodeWidth, a.spots[way[0]].y
	fmt.Fprintf(path, "M%s %s", coordinate(x), coordinate(y))
	for _, i := range way[1:] {
		s := &a.spots[i]
		tox, bend := left(s.column), float64(columnGap)/2
		dx, dy := coordinate(tox-x), coordinate(s.y-y)
		if straight {
			fmt.Fprintf(path, "l%s %s", dx, dy)
		} else {
			fmt.Fprintf(path, "c%s 0 %s %s %s %s", coordinate(bend), coordinate(tox-x-bend), dy, dx, dy)
		}
		if x, y = tox, s.y; s.node < 0 {
			x += nodeWidth
			fmt.Fprintf(path, "h%s", coordinate(nodeWidth))
		}
	}
}

// tip draws what an edge to a spot ends in: an arrow, or a cross.
func (a *arranged) tip(path *strings.Builder, class Class, to *spot) {
	x, y := left(to.column), coordinate(to.y-4)
	switch class {
	case Bad:
		fmt.Fprintf(path, "M%s %sl8 8m-8 0l8 -8", coordinate(x-12), y)
	case OK:
		fmt.Fprintf(path, "M%s %sl7 4l-7 4Z", coordinate(x-7), y)
	default:
		fmt.Fprintf(path, "M%s %sl7 4l-7 4", coordinate(x-7), y)
	}
}

// draw draws a node.
func (n Node) draw(m *markup, x, y float64) {
	class := "node state-" + n.State
	if n.Bold {
		class += " bold"
	}
	if n.Shape == Dashed {
		class += " elsewhere"
	}
	m.link(n.Link)
	m.begin("g", "class", class)
	m.element("title", strings.TrimSuffix(n.Name+"\n"+cmp.Or(n.Says, n.State)+"\n"+n.Note, "\n"))
	box := func(x, y, width, height float64) {
		m.element("rect", "", "x", x, "y", y, "width", width, "height", height, "rx", 6)
	}
	if n.Shape == Stack {
		box(x+4, y+4, nodeWidth-4, nodeHeight-4)
		box(x, y, nodeWidth-4, nodeHeight-4)
	} else {
		box(x, y, nodeWidth, nodeHeight)
	}
	if n.Shape == Double {
		box(x+3, y+3, nodeWidth-6, nodeHeight-6)
	}
	m.element("text", cut(n.Name, 21), "class", "name", "x", x+10, "y", y+18)
	m.element("text", cut(cmp.Or(n.Says, n.State), 27), "class", "says", "x", x+10, "y", y+33)
	m.end("g")
	m.endLink(n.Link)
}

// Figure is the picture with its title and a table of its nodes, as HTML.
func (c Graph) Figure() string {
	needs := make([][]string, len(c.Nodes))
	for _, e := range c.Edges {
		needs[e.To] = append(needs[e.To], e.Note)
	}
	var rows []row
	for i, n := range c.Nodes {
		rows = append(rows, row{cells: []string{n.Name, cmp.Or(n.Says, n.State), some(needs[i]), n.Note}})
	}
	var m markup
	m.begin("div", "class", "scroll", "role", "region", "aria-label", c.Title, "tabindex", 0)
	m.WriteString(c.SVG())
	m.end("div")
	return figureWith(c.Title, "As a table", nil, m.String(), []string{"Name", "State", "Needs", "More"}, rows)
}
