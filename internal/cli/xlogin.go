package cli

import (
	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/remote"
)

// loginFlags are iperf3's, for servers that ask who their client is.
type loginFlags struct {
	User      string `group:"iperf end points" name:"username" placeholder:"NAME" help:"User of an iperf3 server that asks for one; the password comes from IPERF3_PASSWORD or is asked for."`
	PublicKey string `group:"iperf end points" name:"rsa-public-key-path" type:"path" placeholder:"FILE" help:"That server's public RSA key."`
	PKCS1     bool   `group:"iperf end points" name:"use-pkcs1-padding" help:"The older padding, for servers before 3.17."`
}

// engineOf is the engine of an end point, which has to be iperf3's for a login there.
func (f loginFlags) engineOf(e *env, name string) (string, error) {
	engine, err := remote.EngineOf(name)
	if these := e.TypedOf("--username", "--rsa-public-key-path", "--use-pkcs1-padding"); err == nil && engine != measure.IPerf3 && len(these) > 0 {
		err = fault.Usagef("name a server of iperf3: iperf3://HOST", "%s not go with this end point", flagsDo(these))
	}
	return engine, err
}

// login reads what the flags name; nil where no user is named.
func (f loginFlags) login(e *env) (*bus.Login, error) { return e.Login(f.User, f.PublicKey, f.PKCS1) }
