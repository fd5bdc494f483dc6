// Command stint runs, feeds and shows a stint job engine.
//
//	stint up                       an engine on the file stint.db
//	stint sh -- echo hello         enqueue a command; prints the job's id
//	stint jobs show 1              its attempts, with their output
package main

import (
	"os"

	"github.com/stint-go/stint/internal/cli"
)

func main() { os.Exit(cli.Main()) }
