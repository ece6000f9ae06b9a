package fault

import (
	"regexp"
	"sync"
)

// secret is a form of secrets, and what replaces one.
type secret struct {
	form *regexp.Regexp
	as   string
}

// More people see a command line, in results and on the screen, than may know its secrets: a join string, a key, a password in a URL.
var secrets = sync.OnceValue(func() []secret {
	return []secret{
		{regexp.MustCompile(`thru[0-9]+\s*\.\s*[A-Za-z0-9_-]{16,}((\s|\\n)+[A-Za-z0-9_-]{24,})*`), "thru1.***"},
		{regexp.MustCompile(`[A-Za-z0-9_-]{100,}`), "***"},                                                                           // part of a join string
		{regexp.MustCompile(`\bS[A-Z][A-Z2-7]{54,}\b`), "S***"},                                                                      // seed of an nkey, with 58 characters
		{regexp.MustCompile(`((nats|tls|wss?)://)\S*@`), "$1***@"},                                                                   // password, or a token without a user
		{regexp.MustCompile(`\b((ftps?|sftp|smb1?|cifs|nfs4?|rsync|https?|thru|postgres(?:ql)?)://[^\s:/@"]*):[^\s"]*@`), "$1:***@"}, // password that contains a slash
		{regexp.MustCompile(`(?i)([?&](?:ssl)?password=)[^\s&"]*`), "$1***"},
		{regexp.MustCompile(`(?i)\b(vsphere://[^\s:/"]*?)(:|%3a)[^\s"]*@`), "$1:***@"}, // the same after a user of a domain
		{regexp.MustCompile(`(?i)\b(vsphere://[^\s?#"]*[?#])[^\s"]*`), "$1***"},        // password in a query
		{regexp.MustCompile(`[^\s:/@,"=]+:[^\s/@,"]+@`), "***@"},                       // user:password@host
	}
})

// Unsecret returns a text without its secrets.
func Unsecret(text string) string {
	for _, s := range secrets() {
		text = s.form.ReplaceAllString(text, s.as)
	}
	return text
}
