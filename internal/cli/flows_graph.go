package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

const flowsGraphHelp = `graph ID: Show a flow as a graph: its jobs, and what they need of each other

Graph prints the jobs of a flow, what is needed before what needs it. A flow within the
flow is one line, and so are, in a flow of more than 200, jobs of one kind that need the
same and that the same needs; --all prints each job, also those in flows within it.

As mermaid it is text that GitHub, GitLab and many editors draw, as dot it is for
Graphviz. --json is what GET /api/v1/flows/ID/graph answers.

Examples:
  stint flows graph 12
  stint flows graph 12 --format dot | dot -Tsvg > flow.svg
  stint flows graph 12 --json | jq '.nodes[] | select(.critical).id'`

func (a *app) flowsGraphCommand() *cobra.Command {
	var (
		in     ops.GraphInput
		format string
	)
	cmd := a.asks(page(flowsGraphHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		g, err := ops.FlowGraph.Call(ctx, db, in)
		if errors.Is(err, stint.ErrNotFound) {
			if _, there := db.Job(ctx, stint.ID(in.ID)); there == nil {
				err = withHint(usagef("job %d is no flow", in.ID), "stint jobs show %d shows it", in.ID)
			}
		}
		return g, func(time.Time) {
			switch format {
			case "mermaid":
				writeMermaid(a.out, g)
			case "dot":
				writeDot(a.out, g)
			default:
				a.printGraph(g)
			}
			a.noteGraph(g)
		}, err
	}, func(_ *cobra.Command, args []string) error {
		id, err := jobID(args[0])
		in.ID = int64(id)
		return err
	})
	cmd.Flags().BoolVar(&in.All, "all", false, "each job by itself, also those in flows within the flow")
	choiceFlag(cmd.Flags(), &format, "format", "text", "what to print", "text", "mermaid", "dot")
	cmd.MarkFlagsMutuallyExclusive("format", "json")
	return cmd
}

// noteGraph says what of a flow the graph leaves out.
func (a *app) noteGraph(g report.FlowGraph) {
	if g.Folded {
		a.note("jobs of one kind that need the same are one line: --all shows each")
	}
	if g.LeftOut > 0 || g.EdgesLeftOut > 0 {
		a.note("left out: %s, %s between those that are here: --all shows all", words.Counted(g.LeftOut, "node"), words.Counted(g.EdgesLeftOut, "edge"))
	}
	if g.Cut {
		a.note("the flow has more jobs, or more that they need, than a graph is made of: these are the oldest")
	}
}

// printGraph prints a graph as a table, what is needed before what needs it.
func (a *app) printGraph(g report.FlowGraph) {
	fmt.Fprintf(a.out, "flow %d (%s) %s, %s: %s\n\n", g.Flow, words.Visible(g.Kind), g.State, words.Counted(g.Jobs, "job"), cmp.Or(statesInWords(g.States), "none"))
	needs, names := map[stint.ID][]string{}, map[stint.ID]string{}
	for _, n := range g.Nodes {
		names[n.ID] = n.Label()
	}
	for _, e := range g.Edges {
		text := names[e.From]
		switch e.Wants {
		case "failure":
			text = "failure of " + text
		case "end":
			text = "end of " + text
		}
		if e.Broken > 0 {
			text += " (broken)"
		}
		needs[e.To] = append(needs[e.To], text)
	}
	printTable(a, g.Nodes, "no jobs", row{"id", "name", "state", "kind", "jobs", "needs"}, func(n report.FlowNode) row {
		state, jobs := string(n.State), ""
		if n.Outcome == stint.OutcomeSkipped {
			state = n.Outcome.String()
		}
		if n.IsFlow || n.Jobs > 1 {
			jobs = words.Count(n.Jobs)
			if text := statesInWords(n.States); text != "" {
				jobs += ": " + text
			}
		}
		kind := n.Kind
		switch {
		case n.Outside && !n.Deleted:
			kind += fmt.Sprintf(" (of flow %d)", n.Flow)
		case n.IsFlow:
			kind += " (a flow)"
		}
		return row{n.ID, cmp.Or(n.Name, "-"), state, kind, cmp.Or(jobs, "-"), cmp.Or(cut(strings.Join(needs[n.ID], ", "), 200), "-")}
	})
}

// statesInWords says how many jobs are in each state: 9,000 completed, 12 failed.
func statesInWords(states map[stint.State]int) string {
	var all []string
	for _, s := range store.States {
		if n := states[s]; n > 0 {
			all = append(all, words.Count(n)+" "+string(s))
		}
	}
	return strings.Join(all, ", ")
}

// graphText is what a node says of itself, in two lines.
func graphText(n report.FlowNode) [2]string {
	second := string(n.State)
	switch {
	case n.Outcome == stint.OutcomeSkipped:
		second = n.Outcome.String()
	case len(n.States) > 0:
		second = statesInWords(n.States)
	}
	if n.IsFlow {
		second = fmt.Sprintf("%s, %s", n.State, words.Counted(n.Jobs, "job"))
	}
	return [2]string{n.Label(), second}
}

// nested are the nodes of a graph by the flow that they stand in, and the flows whose jobs are among them: those stand
// around their jobs.
func nested(g report.FlowGraph) (in map[stint.ID][]report.FlowNode, around map[stint.ID]bool) {
	flows := map[stint.ID]bool{}
	for _, n := range g.Nodes {
		if n.IsFlow && !n.Outside {
			flows[n.ID] = true
		}
	}
	in, around = map[stint.ID][]report.FlowNode{}, map[stint.ID]bool{}
	for _, n := range g.Nodes {
		flow := g.Flow
		if flows[n.Flow] {
			flow, around[n.Flow] = n.Flow, true
		}
		in[flow] = append(in[flow], n)
	}
	return in, around
}

// writeMermaid writes a graph as a flowchart of mermaid.
func writeMermaid(out io.Writer, g report.FlowGraph) {
	in, around := nested(g)
	fmt.Fprintln(out, "flowchart LR")
	var write func(flow stint.ID, indent string)
	write = func(flow stint.ID, indent string) {
		for _, n := range in[flow] {
			text := graphText(n)
			label := `"` + mermaidText(text[0]) + "<br/>" + mermaidText(text[1]) + `"`
			switch {
			case around[n.ID]:
				fmt.Fprintf(out, "%ssubgraph n%d [%s]\n", indent, n.ID, label)
				write(n.ID, indent+"  ")
				fmt.Fprintf(out, "%send\n", indent)
				continue
			case n.IsFlow:
				label = "[[" + label + "]]"
			case n.Outside:
				label = "([" + label + "])"
			default:
				label = "[" + label + "]"
			}
			fmt.Fprintf(out, "%sn%d%s:::%s\n", indent, n.ID, label, n.State)
		}
	}
	write(g.Flow, "  ")
	for _, e := range g.Edges {
		arrow := map[string]string{"success": "-->", "failure": `-. "on failure" .->`, "end": `-- "at the end" -->`}[e.Wants]
		if e.Broken > 0 {
			arrow = map[string]string{"success": "--x", "failure": `-. "on failure" .-x`, "end": `-- "at the end" --x`}[e.Wants]
		}
		fmt.Fprintf(out, "  n%d %s n%d\n", e.From, arrow, e.To)
	}
	for _, state := range slices.Sorted(maps.Keys(graphColours)) {
		fmt.Fprintf(out, "  classDef %s fill:%s,stroke:#333,color:#111\n", state, graphColours[state])
	}
}

// graphColours are those of states where the reader's colours are not known.
var graphColours = map[stint.State]string{
	stint.Completed: "#c9efd9", stint.Failed: "#ffd0cb", stint.Cancelled: "#e8ddd2", stint.Running: "#c4edf5",
	stint.Available: "#d3e2ff", stint.Retrying: "#ffe6b3", stint.Scheduled: "#e6dcff", stint.Blocked: "#e3e6eb",
}

// mermaidText writes a text of any origin within quotes: all but letters and digits as its number, since mermaid reads HTML,
// Markdown and entities there.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range inOneLine(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" ,.-", r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// writeDot writes a graph for Graphviz.
func writeDot(out io.Writer, g report.FlowGraph) {
	in, around := nested(g)
	fmt.Fprintln(out, "digraph flow {\n  rankdir=LR; compound=true;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];")
	var write func(flow stint.ID, indent string)
	write = func(flow stint.ID, indent string) {
		for _, n := range in[flow] {
			text := graphText(n)
			label := dotText(text[0]) + `\n` + dotText(text[1])
			style := ""
			switch {
			case around[n.ID]: // edges lead to the end of its box
				fmt.Fprintf(out, "%ssubgraph cluster_%d {\n%s  label=\"%s\";\n", indent, n.ID, indent, label)
				write(n.ID, indent+"  ")
				fmt.Fprintf(out, "%s  n%d [label=\"end\", fillcolor=\"%s\"];\n%s}\n", indent, n.ID, graphColours[n.State], indent)
				continue
			case n.IsFlow:
				style = ", peripheries=2"
			case n.Outside:
				style = `, style="dashed,filled"`
			}
			fmt.Fprintf(out, "%sn%d [label=\"%s\", fillcolor=\"%s\"%s];\n", indent, n.ID, label, graphColours[n.State], style)
		}
	}
	write(g.Flow, "  ")
	for _, e := range g.Edges {
		style := map[string]string{"success": "", "failure": `style=dashed, label="on failure"`, "end": `style=dotted, label="at the end"`}[e.Wants]
		if e.Broken > 0 {
			style = strings.TrimPrefix(style+`, color="#b0281e", arrowhead=tee`, ", ")
		}
		fmt.Fprintf(out, "  n%d -> n%d [%s];\n", e.From, e.To, style)
	}
	fmt.Fprintln(out, "}")
}

// dotText writes a text of any origin within quotes. A backslash begins an escape there.
func dotText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(inOneLine(text))
}

// inOneLine is a text without what other programs could stumble over.
func inOneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(words.Visible(strings.ToValidUTF8(text, "\ufffd")))
}
