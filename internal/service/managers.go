package service

import (
	"cmp"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/unit"
)

// systemd installs the units that packages install, unless a package did, and a drop-in with what is special here.
func systemd(u Unit, root string) Plan {
	const dir = "/etc/systemd/system/"
	name, units := u.Name()+".service", []string{u.Name() + ".service"}
	socket := packaged("systemd/" + u.Name() + ".socket") // a watch has none
	if socket != "" {
		units = []string{u.Name() + ".socket", name}
	}
	p := Plan{
		Manager: "systemd", Logs: "journalctl -u " + name, State: "/var/lib/" + u.Name(),
		Start:   [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", name}, {"systemctl", "restart", name}},
		Stop:    [][]string{append([]string{"-systemctl", "disable", "--now"}, units...)},
		Clean:   [][]string{{"systemctl", "daemon-reload"}, {"-systemctl", "reset-failed", name}},
		Running: []string{"systemctl", "is-active", "--quiet", name},
		Why:     []string{"systemctl", "show", "--property=StatusText", "--value", name},
	}
	if !exists(root, "/usr/lib/systemd/system/"+name) && !exists(root, "/lib/systemd/system/"+name) {
		p.Files = []File{
			{Path: dir + name, Text: packaged("systemd/" + name), Mode: 0o644},
			{Path: dir + u.Name() + ".socket", Text: socket, Mode: 0o644, Optional: true},
		}
	}
	own := dir + name + ".d/"
	p.Files = append(p.Files, File{Path: own + "50-install.conf", Text: u.dropIn(), Mode: 0o644})
	for _, privilege := range []string{"capture", "tune", "inventory"} {
		f := File{Path: own + "allow-" + privilege + ".conf", Mode: 0o644, Optional: true}
		if slices.Contains(u.Allow, privilege) {
			f.Text = packaged("systemd/allow-" + privilege + ".conf")
		}
		p.Files = append(p.Files, f)
	}
	p.Files = append(p.Files, u.joinFile())
	return p
}

// dropIn returns the part of the unit that this installation sets.
func (u Unit) dropIn() string {
	words := unit.Mapped(u.arguments("/var/lib/"+u.Name(), "-"), unitWord)
	text := "# Written by thru service install. Your own settings go to another file: systemctl edit " + u.Name() + "\n[Service]\nExecStart=\nExecStart=" + strings.Join(words, " ") + "\n"
	if u.Join != "" {
		text += "StandardInput=file:" + u.stdin() + "\n" // systemd opens it as root
	}
	for _, dir := range u.Writes {
		text += "ReadWritePaths=" + unitWord(dir) + "\n"
	}
	return text
}

// unitWord quotes a word of a command line in a unit: systemd.service(5), "Command lines".
func unitWord(w string) string {
	w = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`).Replace(w)
	if w == "" || strings.ContainsAny(w, " \t;'\"") {
		return `"` + w + `"`
	}
	return w
}

// filled returns a template with its values in place.
func (u Unit) filled(template string, more ...string) string {
	return strings.NewReplacer(append(more, "@ROLE@", u.Role, "@STDIN@", u.stdin())...).Replace(packaged(template))
}

// launchd installs a daemon of macOS.
func launchd(u Unit, _ string) Plan {
	path, target := "/Library/LaunchDaemons/"+u.Name()+".plist", "system/"+u.Name()
	state := "/var/db/" + u.Name()
	args := ""
	for _, a := range u.arguments(state, "-") {
		args += "\t\t<string>" + escaped(a) + "</string>\n"
	}
	stop := []string{"-launchctl", "bootout", target}
	return Plan{
		Manager: "launchd", Logs: "cat /var/log/" + u.Name() + ".log", State: state,
		Files:   []File{{Path: path, Text: u.filled("launchd.plist", "@ARGUMENTS@", args), Mode: 0o644}, u.joinFile()},
		Start:   [][]string{stop, {"launchctl", "bootstrap", "system", path}},
		Stop:    [][]string{stop},
		Running: []string{"launchctl", "print", target},
	}
}

// rcd installs a script of FreeBSD's rc(8).
func rcd(u Unit, _ string) Plan {
	name := "thru_" + u.Role
	state := "/var/db/" + u.Name()
	return Plan{
		Manager: "rc.d", Logs: "grep " + u.Name() + " /var/log/daemon.log /var/log/messages", State: state,
		Files: []File{{
			Path: "/usr/local/etc/rc.d/" + name, Mode: 0o755,
			Text: u.filled("rc.d", "@BINARY@", doc.Quote(u.Binary), "@COMMAND@", u.shellLine(state)),
		}, u.joinFile()},
		Start:   [][]string{{"sysrc", name + "_enable=YES"}, {"service", name, "restart"}},
		Stop:    [][]string{{"-service", name, "onestop"}},
		Clean:   [][]string{{"-sysrc", "-x", name + "_enable"}},
		Running: []string{"service", name, "onestatus"},
	}
}

// smf installs a service of Solaris and illumos.
func smf(u Unit, _ string) Plan {
	path, fmri := "/var/svc/manifest/site/"+u.Name()+".xml", "svc:/application/"+u.Name()+":default"
	state := "/var/lib/" + u.Name()
	return Plan{
		Manager: "SMF", Logs: "cat $(svcs -L " + fmri + ")", State: state,
		Files:   []File{{Path: path, Text: u.filled("smf.xml", "@COMMAND@", escaped(u.shellLine(state))), Mode: 0o644}, u.joinFile()},
		Start:   [][]string{{"svccfg", "import", path}, {"svcadm", "enable", fmri}, {"svcadm", "restart", fmri}},
		Stop:    [][]string{{"-svcadm", "disable", "-s", fmri}, {"-svccfg", "delete", "-f", "application/" + u.Name()}},
		Running: []string{"sh", "-c", `test "$(svcs -H -o state ` + fmri + `)" = online`},
	}
}

// windows installs a service of Windows. It hands no stdin over, so the join string goes where LocalSystem looks for it.
func windows(u Unit, _ string) Plan {
	state := filepath.Join(cmp.Or(os.Getenv("ProgramData"), `C:\ProgramData`), u.Name())
	line, join := strings.Join(unit.Mapped(u.arguments(state, u.Name()), windowsWord), " "), u.joinFile()
	join.Path = filepath.Join(cmp.Or(os.Getenv("SystemRoot"), `C:\Windows`), `System32\config\systemprofile\AppData\Roaming\thru\join`, u.Name())
	return Plan{
		Manager: "the Windows service manager", Files: []File{join}, Known: []string{"sc.exe", "query", u.Name()}, Logs: "type " + filepath.Join(state, "service.log"), State: state,
		Start: [][]string{
			{"-sc.exe", "create", u.Name(), "binPath=", line, "start=", "auto"}, {"sc.exe", "config", u.Name(), "binPath=", line},
			{"sc.exe", "failure", u.Name(), "reset=", "86400", "actions=", "restart/5000"}, {"-sc.exe", "stop", u.Name()}, {"sc.exe", "start", u.Name()},
		},
		Stop:    [][]string{{"-sc.exe", "stop", u.Name()}, {"-sc.exe", "delete", u.Name()}},
		Running: []string{"cmd.exe", "/c", "sc.exe query " + u.Name() + " | find \"RUNNING\""},
	}
}

// shellLine returns the command line of the service for sh.
func (u Unit) shellLine(state string) string {
	return strings.Join(unit.Mapped(u.arguments(state, "-"), doc.Quote), " ")
}

// windowsWord quotes a word of a command line of Windows: one with a space. A backslash before the closing quote is doubled.
func windowsWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t") {
		return w
	}
	if strings.HasSuffix(w, `\`) {
		w += `\`
	}
	return `"` + w + `"`
}

// escaped returns a text for XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder accepts everything
	return b.String()
}
