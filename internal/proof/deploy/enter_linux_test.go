package deploy

import (
	"os/exec"
	"syscall"
)

// enter has a command run in an image, as the user of it.
func enter(cmd *exec.Cmd, root string) {
	cmd.Path, cmd.Dir = "/usr/local/bin/stint", "/data"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
}
