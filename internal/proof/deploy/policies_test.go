package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// What GitHub and those who cite read, as far as it goes: a file with another key is one that they may pass over.
func TestTheFormsOfIssuesAreForms(t *testing.T) {
	type form struct {
		Name, Description string
		Labels            []string
		Body              []struct {
			Type, ID    string
			Attributes  struct{ Label, Description, Value, Render string }
			Validations struct{ Required bool }
		}
	}
	type config struct {
		BlankIssuesEnabled bool                                `json:"blank_issues_enabled"`
		ContactLinks       []struct{ Name, URL, About string } `json:"contact_links"`
	}
	type citation struct {
		CFFVersion                                   string `json:"cff-version"`
		RepositoryCode                               string `json:"repository-code"`
		Message, Title, Abstract, Type, License, URL string
		Authors                                      []struct{ Name string }
		Keywords                                     []string
	}
	for path, into := range map[string]any{
		".github/ISSUE_TEMPLATE/bug.yml": &form{}, ".github/ISSUE_TEMPLATE/feature.yml": &form{}, ".github/ISSUE_TEMPLATE/config.yml": &config{}, "CITATION.cff": &citation{},
	} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err == nil {
			err = yaml.UnmarshalStrict(text, into)
		}
		if f, ok := into.(*form); err != nil || ok && (f.Name == "" || len(f.Body) == 0) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
