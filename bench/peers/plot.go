package main

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/stint-go/stint/bench/contest"
)

// Who has a colour of its own; what is held is solid, what is not is dashed.
var colours = []struct {
	name string
	color.Color
}{
	{"stint", color.RGBA{R: 0x1f, G: 0x6f, B: 0xb4, A: 0xff}},
	{"River", color.RGBA{R: 0xc4, G: 0x4e, B: 0x2f, A: 0xff}},
}

// plot draws the medians over time, on a scale on which a tenth is as far below
// as ten times is above: the lines lie that far apart.
func (r *recording) plot(path string) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.BackgroundColor = color.White // pages may be dark, and the text is black
	p.Title.Text = "Jobs per second under a pinned horizon"
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = "jobs per second"
	p.X.Min, p.Y.Scale, p.Y.Tick.Marker = 0, plot.LogScale{}, plot.TickerFunc(decades)
	p.Title.TextStyle.Font.Size = font.Length(13)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = false, true, vg.Points(2)
	p.Add(grid())
	low, high := math.Inf(1), 0.0
	for _, name := range r.names {
		medians := r.medians(name)
		points := make(plotter.XYs, len(medians))
		for i, v := range medians {
			v = max(v, 1) // a logarithm has no zero
			points[i] = plotter.XY{X: float64(i+1) * slice.Seconds(), Y: v}
			low, high = min(low, v), max(high, v)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color, line.Width = colourOf(name), vg.Points(2)
		if strings.HasSuffix(name, ", nothing held") {
			line.Width, line.Dashes = vg.Points(1.5), []vg.Length{vg.Points(5), vg.Points(4)}
		}
		p.Add(line)
		p.Legend.Add(name, line)
	}
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	return save(p, path)
}

// save writes the plot as SVG. Whoever looks at it may not have the font that it
// was laid out with.
func save(p *plot.Plot, path string) error {
	image, err := p.WriterTo(18*vg.Centimeter, 11*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := image.WriteTo(&b); err != nil {
		return err
	}
	svg := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return os.WriteFile(path, svg, 0o666)
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = nil, color.Gray{Y: 0xdd}
	return g
}

func colourOf(name string) color.Color {
	for _, c := range colours {
		if strings.HasPrefix(name, c.name) {
			return c.Color
		}
	}
	return color.Black
}

// decades marks 1, 2 and 5 of each power of ten.
func decades(low, high float64) (ticks []plot.Tick) {
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * power; v >= low && v <= high*1.0001 {
				ticks = append(ticks, plot.Tick{Value: v, Label: contest.Number(v)})
			}
		}
	}
	return ticks
}
