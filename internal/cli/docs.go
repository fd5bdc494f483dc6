package cli

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/docs"
)

func (a *app) docsCommand() *cobra.Command {
	return a.does(page(`docs [PAGE]: Print a page of the documentation

Docs prints a page of the documentation of this version, as Markdown; without a name
the index, which says what each is about.

Examples:
  stint docs
  stint docs errors
  stint docs limits | less`), func(_ context.Context, _ *cobra.Command, args []string) error {
		name := "README"
		if len(args) > 0 {
			name = args[0]
		}
		text, err := pageCalled(name)
		if err == nil {
			_, err = a.out.Write(text)
		}
		return err
	})
}

// pageCalled finds a page by its name, with or without its folder and ending, as the index has it.
func pageCalled(name string) ([]byte, error) {
	wanted := strings.TrimSuffix(path.Base(name), ".md")
	var found string
	err := fs.WalkDir(docs.Pages, ".", func(file string, _ fs.DirEntry, err error) error {
		if strings.EqualFold(strings.TrimSuffix(path.Base(file), ".md"), wanted) {
			found = file
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if found == "" {
		return nil, withHint(usagef("there is no page %q", name), "stint docs lists all of them")
	}
	return docs.Pages.ReadFile(found)
}
