package contest

import (
	"encoding/csv"
	"os"
	"strconv"
)

// SaveCSV writes a file for other programs: a row for each figure of each
// entrant.
func SaveCSV(path string, results []Result) error {
	table := [][]string{{"bout", "entrant", "figure", "rounds", "median", "ratio", "least ratio", "greatest ratio"}}
	for _, r := range results {
		for _, s := range r.Standings {
			for _, f := range r.Figures {
				if median, ok := s.Medians[f.Name]; ok {
					spread := s.Spread[f.Name]
					table = append(table, []string{r.Bout, s.Name, f.Name, strconv.Itoa(r.Rounds),
						plain(median), plain(s.Ratios[f.Name]), plain(spread.Least), plain(spread.Greatest)})
				}
			}
		}
	}
	return WriteCSV(path, table)
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

// WriteCSV writes a table to a file.
func WriteCSV(path string, table [][]string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(table); err != nil {
		return err
	}
	return f.Close()
}
