package pgtest

import (
	"errors"
	"os"
)

// Windows has no servers for tests. Packages that use them compile there, and their tests fail when they ask for one.

type serverProcess struct{}

func (*serverProcess) stop(Mode) error { return errors.ErrUnsupported }
func (*serverProcess) kill() error     { return errors.ErrUnsupported }
func (*serverProcess) ended() bool     { return true }

func startServer(Installation, *runDir, int) (*serverProcess, error) {
	return nil, errors.ErrUnsupported
}

func runAsServer(string, []string, string, *os.File) error { return errors.ErrUnsupported }

type watchdog struct{}

func newWatchdog(string) (*watchdog, error) { return nil, errors.ErrUnsupported }
func (*watchdog) dismiss() error            { return nil }

func serverUser() (user any, switched bool)    { return nil, false }
func giveToServer(string) error                { return nil }
func cacheDirs() []string                      { return nil }
func takeLock(string) (*os.File, error)        { return nil, errors.ErrUnsupported }
func lockIsFree(string) (free bool, err error) { return false, errors.ErrUnsupported }
func releaseSharedMemory(string)               {}
