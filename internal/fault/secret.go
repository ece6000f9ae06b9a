package fault

import "regexp"

// What stands in a command line can be seen in results and on the screen by more
// people than those who may know it: a join string, a key, a password in a URL.
var secrets = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`thru[0-9]+\s*\.\s*[A-Za-z0-9_-]{16,}((\s|\\n)+[A-Za-z0-9_-]{24,})*`), "thru1.***"},
	{regexp.MustCompile(`[A-Za-z0-9_-]{100,}`), "***"},                                                           // a part of a join string
	{regexp.MustCompile(`\bS[A-Z][A-Z2-7]{54,}\b`), "S***"},                                                      // the seed of an nkey, of 58 characters
	{regexp.MustCompile(`((nats|tls|wss?)://)\S*@`), "$1***@"},                                                   // a password, or a token without one
	{regexp.MustCompile(`\b((ftps?|sftp|smb1?|cifs|nfs4?|rsync|https?|thru)://[^\s:/@"]*):[^\s"]*@`), "$1:***@"}, // a password with a slash in it
	{regexp.MustCompile(`(?i)\b(vsphere://[^\s:/"]*?)(:|%3a)[^\s"]*@`), "$1:***@"},                               // the same behind a user of a domain
	{regexp.MustCompile(`(?i)\b(vsphere://[^\s?#"]*[?#])[^\s"]*`), "$1***"},                                      // one as a query
	{regexp.MustCompile(`[^\s:/@,"=]+:[^\s/@,"]+@`), "***@"},                                                     // user:password@host
}

// Unsecret is a text without the secrets in it.
func Unsecret(text string) string {
	for _, s := range secrets {
		text = s.form.ReplaceAllString(text, s.as)
	}
	return text
}
