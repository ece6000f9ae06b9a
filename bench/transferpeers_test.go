//go:build linux

package bench

import (
	"net/url"
	"os"
	"slices"
	"strings"

	"thru/internal/transfer/servers"
)

// fileService is a protocol, its server, and the common copy programs.
type fileService struct {
	protocol     string
	ready        func(dir string) (servers.Server, error)
	ports        []string // open when the server is ready
	ownNamespace bool     // the server needs a mount namespace of its own
	certified    bool     // with a certificate or key that clients do not know
	clients      func(at servers.Server, dir string) []fileClient
}

// fileClient is a program with its calls. name is the name of a file at the server.
type fileClient struct {
	program, version string // version: the flag that prints it; empty: none
	get              func(name, local string) []string
	put              func(local, name string) []string
	keeps            bool // it cannot write to the null device
}

// name returns the name of a comparison.
func (s fileService) name(upload bool) string {
	if upload {
		return "transfer-" + s.protocol + "-up"
	}
	return "transfer-" + s.protocol + "-down"
}

// url returns the URL of a file at the server.
func (s fileService) url(at servers.Server, name string) string {
	u := url.URL{Scheme: s.protocol, Host: servers.Host, Path: "/" + at.Dir + "/" + name}
	if at.Config.Port != "" {
		u.Host = at.Address()
	}
	if at.Config.User != "" {
		u.User = url.User(at.Config.User)
	}
	return u.String()
}

// argv returns the server's command line: in a separate session, since smbd ends all processes of its
// session.
func (s fileService) argv(at servers.Server) []string {
	if s.ownNamespace {
		return append([]string{"setsid", "unshare", "-m"}, at.Argv...)
	}
	return append([]string{"setsid"}, at.Argv...)
}

// Ports of the servers. In a separate namespace nothing else uses them.
const (
	httpPort  = "5711"
	httpsPort = "5712"
	ftpPort   = "5713"
	ftpsPort  = "5714"
	sshPort   = "5715"
	smbPort   = "5716"
	rsyncPort = "5717"
)

// fileServices returns all services, in the order of comparison.
func fileServices() []fileService {
	return []fileService{
		{protocol: "http", ports: []string{httpPort}, clients: webClients("http"),
			ready: func(dir string) (servers.Server, error) { return servers.Nginx(dir, httpPort, "", "", "") }},
		{protocol: "https", ports: []string{httpsPort}, certified: true, clients: webClients("https"), ready: readyHTTPS},
		{protocol: "ftp", ports: []string{ftpPort}, clients: ftpClients(false),
			ready: func(dir string) (servers.Server, error) { return servers.Vsftpd(dir, ftpPort, "") }},
		{protocol: "ftps", ports: []string{ftpsPort}, certified: true, clients: ftpClients(true), ready: readyFTPS},
		{protocol: "sftp", ports: []string{sshPort}, certified: true, clients: sshClients, ready: readySSH},
		{protocol: "smb", ports: []string{smbPort}, clients: smbClients,
			ready: func(dir string) (servers.Server, error) { return servers.Samba(dir, smbPort) }},
		{protocol: "nfs", ports: []string{"2049", "20048"}, ownNamespace: true, clients: nfsClients,
			ready: func(dir string) (servers.Server, error) { return servers.Ganesha(dir, []string{"3"}) }},
		{protocol: "rsync", ports: []string{rsyncPort}, clients: rsyncClients,
			ready: func(dir string) (servers.Server, error) { return servers.Rsync(dir, rsyncPort, "") }},
	}
}

func readyHTTPS(dir string) (servers.Server, error) {
	cert, key, _, err := servers.Certificate(dir)
	if err != nil {
		return servers.Server{}, err
	}
	return servers.Nginx(dir, httpsPort, cert, key, "")
}

func readyFTPS(dir string) (servers.Server, error) {
	cert, key, _, err := servers.Certificate(dir)
	if err != nil {
		return servers.Server{}, err
	}
	return servers.Vsftpd(dir, ftpsPort, servers.VsftpdTLS(cert, key))
}

func readySSH(dir string) (servers.Server, error) {
	s, _, err := servers.SSHD(dir, sshPort)
	return s, err
}

func webClients(scheme string) func(servers.Server, string) []fileClient {
	return func(at servers.Server, _ string) []fileClient {
		call := []string{"curl", "-qsSfk", "-u", at.Config.User + ":" + at.Secret}
		there := scheme + "://" + at.Address() + "/" + at.Dir + "/"
		return []fileClient{{"curl", "--version",
			func(name, local string) []string { return with(call, "-o", local, there+name) },
			func(local, name string) []string { return with(call, "-T", local, there+name) }, false,
		}}
	}
}

func ftpClients(encrypted bool) func(servers.Server, string) []fileClient {
	return func(at servers.Server, dir string) []fileClient {
		call, set := []string{"curl", "-qsSf"}, "set xfer:clobber yes; "
		if encrypted {
			call = append(call, "--ssl-reqd", "-k")
			set += "set ftp:ssl-force yes; set ftp:ssl-allow-anonymous yes; set ftp:ssl-protect-data yes; set ssl:verify-certificate no; "
		}
		there := "ftp://" + at.Address()
		script := func(line string) []string {
			return []string{"env", "HOME=" + dir, "lftp", "-c", set + "open " + there + "; " + line}
		}
		return []fileClient{{"curl", "--version",
			func(name, local string) []string { return with(call, "-o", local, there+"/"+at.Dir+"/"+name) },
			func(local, name string) []string { return with(call, "-T", local, there+"/"+at.Dir+"/"+name) }, false,
		}, {"lftp", "--version",
			func(name, local string) []string { return script("get " + at.Dir + "/" + name + " -o " + local) },
			func(local, name string) []string { return script("put " + local + " -o " + at.Dir + "/" + name) }, false,
		}}
	}
}

func sshClients(at servers.Server, _ string) []fileClient {
	options := []string{"-q", "-i", at.Config.Key, "-o", "UserKnownHostsFile=" + at.Config.KnownHosts, "-o", "BatchMode=yes", "-P", at.Config.Port}
	there := at.Config.User + "@" + servers.Host
	batch := func(line string) []string {
		call := with([]string{"sh", "-c", `echo "$1" | { shift; exec "$@"; }`, "sh", line, "sftp", "-b", "-"}, options...)
		return append(call, there)
	}
	scp := with([]string{"scp"}, options...)
	return []fileClient{{"sftp", "",
		func(name, local string) []string { return batch("get /" + at.Dir + "/" + name + " " + local) },
		func(local, name string) []string { return batch("put " + local + " /" + at.Dir + "/" + name) }, false,
	}, {"scp", "",
		func(name, local string) []string { return with(scp, there+":/"+at.Dir+"/"+name, local) },
		func(local, name string) []string { return with(scp, local, there+":/"+at.Dir+"/"+name) }, false,
	}}
}

func smbClients(at servers.Server, _ string) []fileClient {
	share, folder, _ := strings.Cut(at.Dir, "/")
	call := []string{"smbclient", "//" + servers.Host + "/" + share, "-p", at.Config.Port, "-U", at.Config.User + "%" + at.Secret, "-s", os.DevNull, "-D", folder, "-c"}
	return []fileClient{{"smbclient", "--version",
		func(name, local string) []string { return with(call, "get "+name+" "+local) },
		func(local, name string) []string { return with(call, "put "+local+" "+name) }, false,
	}}
}

func nfsClients(at servers.Server, _ string) []fileClient {
	there := "nfs://" + servers.Host + "/" + at.Dir + "/"
	return []fileClient{{"nfs-cp", "", // it has no version, and always creates a new file
		func(name, local string) []string { return []string{"nfs-cp", there + name, local} },
		func(local, name string) []string { return []string{"nfs-cp", local, there + name} }, true,
	}}
}

func rsyncClients(at servers.Server, _ string) []fileClient {
	call := []string{"env", "RSYNC_PASSWORD=" + at.Secret, "rsync", "--whole-file"}
	there := "rsync://" + at.Config.User + "@" + at.Address() + "/" + at.Dir + "/"
	return []fileClient{{"rsync", "--version",
		func(name, local string) []string {
			if local == os.DevNull {
				return with(call, "--write-devices", there+name, local)
			}
			return with(call, there+name, local)
		},
		func(local, name string) []string { return with(call, local, there+name) }, false,
	}}
}

// with returns a copy of a call with more words.
func with(call []string, more ...string) []string { return append(slices.Clone(call), more...) }
