package shelljob

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

var inherited = []string{
	"PATH", "PATHEXT", "ComSpec", "SystemRoot", "SystemDrive", "windir", "TEMP", "TMP", "TZ", "LANG",
	"USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA",
	"ProgramData", "ProgramFiles*", "CommonProgramFiles*", "PROCESSOR_*", "NUMBER_OF_PROCESSORS", "OS",
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }

// shell passes the line on unquoted, since cmd has rules of its own.
func shell(line string) *exec.Cmd {
	cmd := exec.Command("cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /d /s /c "` + line + `"`}
	return cmd
}

// group is a job object. A child that the command starts before it is put
// into the object, within microseconds of its own start, is not in it.
type group struct {
	object windows.Handle
	id     uint32
}

// prepare makes an object that ends its processes when its last handle is
// closed, also because the engine died.
func (g *group) prepare(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP
	object, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("create a job object: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(object, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(object)
		return fmt.Errorf("limit a job object: %w", err)
	}
	g.object = object
	return nil
}

func (g *group) adopt(p *os.Process) error {
	g.id = uint32(p.Pid)
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, g.id)
	if err != nil {
		return fmt.Errorf("open the process: %w", err)
	}
	defer windows.CloseHandle(h)
	if err := windows.AssignProcessToJobObject(g.object, h); err != nil {
		return fmt.Errorf("put the process into a job object: %w", err)
	}
	return nil
}

// terminate asks console programs to end; nothing else can be asked.
func (g *group) terminate() {
	if windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.id) != nil {
		g.kill()
	}
}

func (g *group) kill() { _ = windows.TerminateJobObject(g.object, 1) }

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	TotalUserTime, TotalKernelTime, PeriodUserTime, PeriodKernelTime int64
	PageFaults, Processes, Active, Terminated                        uint32
}

func (g *group) gone() bool {
	var a accounting
	err := windows.QueryInformationJobObject(g.object, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	return err != nil || a.Active == 0
}

func (g *group) close() {
	if g.object != 0 {
		_ = windows.CloseHandle(g.object)
	}
}

func status(state *os.ProcessState) (code int, signal string) { return state.ExitCode(), "" }
