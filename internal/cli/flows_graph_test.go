package cli

import (
	"bytes"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
)

// graphOf is a graph with a name wherever names are.
func graphOf(name string) report.FlowGraph {
	return report.FlowGraph{
		Flow: 1, Kind: name, State: stint.Blocked,
		Nodes: []report.FlowNode{
			{ID: 2, Name: name, Kind: name, Flow: 1, State: stint.Completed, Jobs: 1},
			{ID: 3, Name: name, Kind: name, Flow: 1, IsFlow: true, State: stint.Blocked, Jobs: 1},
			{ID: 4, Kind: name, Flow: 3, State: stint.Running, Jobs: 1},
			{ID: 5, Kind: name, Flow: 9, Outside: true, State: stint.Failed, Jobs: 1},
			{ID: 6, Kind: name, Flow: 1, State: stint.Failed, Jobs: 3, States: map[stint.State]int{stint.Failed: 1, stint.Completed: 2}},
			{ID: 7, Name: name, Kind: name, Flow: 1, IsFlow: true, State: stint.Blocked},
		},
		Edges: []report.FlowEdge{{From: 2, To: 4, Wants: "success", Satisfied: 1}, {From: 5, To: 6, Wants: "failure", Satisfied: 1}, {From: 3, To: 6, Wants: "end", Open: 3}, {From: 5, To: 7, Wants: "success", Broken: 1}},
	}
}

var (
	mermaidLine = regexp.MustCompile(`^ *(flowchart LR|end|subgraph n\d+ \["([^"\n]*)<br/>[^"\n]*"\]|n\d+(?:\[|\[\[|\(\[)"([^"\n]*)<br/>[^"\n]*"(?:\]|\]\]|\]\)):::[a-z]+|n\d+ (?:-->|--x|-\. "on failure" \.-[>x]|-- "at the end" --[>x]) n\d+|classDef [a-z]+ fill:#[0-9a-f]+,stroke:#333,color:#111)$`)
	mermaidCode = regexp.MustCompile(`#(\d+);`)
	dotLine     = regexp.MustCompile(`^ *(digraph flow \{|rankdir=LR; compound=true;|node \[.*\];|\}|subgraph cluster_\d+ \{|label="((?:[^"\\]|\\.)*)";|n\d+ \[label="((?:[^"\\]|\\.)*)", fillcolor="#[0-9a-f]+"(, peripheries=2|, style="dashed,filled")?\];|n\d+ -> n\d+ \[[^"]*(?:"[^"]*"[^"]*)*\];)$`)
)

// FuzzNamesInGraphs has names that come from anywhere at all places of a graph: each line is one of those that there
// are, and a label reads as the name.
func FuzzNamesInGraphs(f *testing.F) {
	for _, name := range []string{"fetch", `"]; x -->y["`, "a\nb", `\`, `\"`, `a\n`, "#quot;", "<br/>", "`**md**`", "end", "%%{init: {}}%%", "\x00\x1b[31m", "\xff", "\u2028", "\u202e", "日本 ×2"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		g, visible := graphOf(name), inOneLine(name)
		var out bytes.Buffer
		writeMermaid(&out, g)
		labels := 0
		for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
			found := mermaidLine.FindStringSubmatch(line)
			if found == nil {
				t.Fatalf("of %q mermaid has the line %q", name, line)
			}
			if label := found[2] + found[3]; label != "" {
				labels++
				read := mermaidCode.ReplaceAllStringFunc(label, func(code string) string {
					n, _ := strconv.Atoi(code[1 : len(code)-1])
					return string(rune(n))
				})
				if label != html.EscapeString(label) || read != visible && read != visible+" ×3" {
					t.Fatalf("of %q the label is %q, which reads %q", name, label, read)
				}
			}
		}
		out.Reset()
		writeDot(&out, g)
		for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
			found := dotLine.FindStringSubmatch(line)
			if found == nil {
				t.Fatalf("of %q dot has the line %q", name, line)
			}
			if label := found[2] + found[3]; label != "" && label != "end" {
				labels++
				first, _, _ := strings.Cut(strings.ReplaceAll(label, `\\`, "\x00"), `\n`)
				read := strings.ReplaceAll(strings.ReplaceAll(first, `\"`, `"`), "\x00", `\`)
				if read != visible && read != visible+" ×3" {
					t.Fatalf("of %q the label is %q, which reads %q", name, label, read)
				}
			}
		}
		if visible != "" && labels != 12 {
			t.Fatalf("of %q there are %d labels:\n%s", name, labels, out.String())
		}
	})
}
