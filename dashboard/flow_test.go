package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
)

func TestTheWaterfallOfManyJobsLeavesOutThoseThatCompletedFirst(t *testing.T) {
	g := flowGraph{report.FlowGraph{Flow: 1}}
	for i := range shownLanes + 50 {
		at := noon.Add(time.Duration(i) * time.Minute)
		n := report.FlowNode{ID: stint.ID(i + 2), Name: fmt.Sprintf("n%03d.", i), State: stint.Completed, Created: noon, Started: at, Finished: at.Add(time.Second)}
		switch i {
		case 1:
			n.State = stint.Failed
		case 2:
			n.Critical = true
		case 3:
			n.Outside = true
		}
		g.Nodes = append(g.Nodes, n)
	}
	drawn := string(g.Waterfall("/jobs/", noon.Add(24*time.Hour)))
	for i, want := range map[int]bool{0: false, 1: true, 2: true, 3: false, 4: false, 51: false, 52: true, shownLanes + 49: true} {
		if got := strings.Contains(drawn, fmt.Sprintf("n%03d.</text>", i)); got != want {
			t.Errorf("node %d is drawn: %v, want %v", i, got, want)
		}
	}
	if got := strings.Count(drawn, ".</text>"); got != shownLanes || g.LanesLeftOut() != 49 {
		t.Errorf("%d are drawn, and %d left out", got, g.LanesLeftOut())
	}
	g.Nodes = g.Nodes[:10]
	if got := strings.Count(string(g.Waterfall("/jobs/", noon)), ".</text>"); got != 9 || g.LanesLeftOut() != 0 {
		t.Errorf("of a small flow %d are drawn, and %d left out", got, g.LanesLeftOut())
	}
}
