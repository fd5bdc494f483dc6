// Command stint runs, feeds and shows a stint job engine.
//
//	stint up                       an engine on the file stint.db
//	stint sh -- echo hello         enqueue a command; prints the job's id
//	stint jobs show 1              what became of it
//
// # How it is built
//
//	main ─▶ app ─▶ root command ─▶ one constructor per subcommand
//	         │                              │
//	         │ streams, environment         ├─▶ flags    values that check themselves
//	         └ explain: error ─▶ hint       └─▶ database every role of a store, for either kind
//
// A flag that was not given is set from the environment or from a file of
// settings before its command begins; the flag's value reads all three.
//
// Each subcommand is a file with a constructor that takes the [app]: everything
// it touches of the world outside. Commands return errors; only the app prints
// them, with a hint where one helps, and turns them into an exit code.
package main

import (
	"os"
	_ "time/tzdata" // zones of schedules on machines that have none installed
)

func main() {
	os.Exit(newApp().run(os.Args[1:]))
}
