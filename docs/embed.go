// Package docs has the pages for users. Its tests compile and run the code that they show.
package docs

import "embed"

// Pages are the pages for users, which the command prints.
//
//go:embed *.md guide/*.md
var Pages embed.FS
