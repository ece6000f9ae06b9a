package bus

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Last tokens of a fleet's subjects.
const (
	verbBye   = "bye"   // from an operator: the client has ended; no reply
	verbAgain = "again" // from an operator: send the events after a number again; no reply

	wordEvent = "event" // last in the subject of an event
	wordAlive = "alive" // of the agent's keepalive to a client
	wordLeave = "leave" // of its last message to a client
	wordReply = "r"     // before the number of a reply
	wordOwn   = "own"   // in place of a run: replies of JetStream

	headerNumber = "Thru-Number" // number of an event that must not be lost, from 1 for each login
	headerMay    = "Thru-May"    // from the controller: the privileges of the user, with commas; an agent grants no others
	headerLogin  = "Thru-Login"  // in a reply: changes when the agent has ended the client's sessions meanwhile

	tokenRegistry = "registry" // in place of an agent's key
	tokenAny      = "any"      // any controller
	registryQueue = "thru-registry"
)

// Times of a fleet.
const (
	presenceEvery = 5 * time.Second
	offlineAfter  = 3 * presenceEvery
	rollSpread    = 500 * time.Millisecond // time over which agents spread their answers to a roll call
)

// The subjects of a fleet. AGENT and OPERATOR are public nkeys, to which the
// permissions of a connection are bound. RUN is random for each connection of an
// operator, so that its commands are separate. A handler knows a client as
// "OPERATOR-RUN".
//
//	thru.to.AGENT.OPERATOR.RUN.VERB    operator to agent: requests
//	thru.ask.AGENT.OPERATOR.RUN.VERB   user to a controller, which passes it on as the one above if the user may
//	thru.re.OPERATOR.RUN.AGENT.>       agent to operator: replies, events, keepalives
//	thru.alive.OPERATOR.RUN            operator to all agents: renews its leases
//	thru.here.AGENT                    agent to controllers: presence
//	thru.roll.CONTROLLER               controller to all agents: asks for presence
//	thru.registry.OPERATOR.RUN.VERB    operator to a controller
//	thru.re.OPERATOR.RUN.registry.>    controller to operator
//	thru.spool.AGENT.any|CONTROLLER    agent to a controller: results
//	thru.ack.AGENT.>                   controller to agent: stored results, and messages about its name
func toSubject(agent string, o operatorID, verb string) string {
	if agent == tokenRegistry {
		return fmt.Sprintf("thru.registry.%s.%s", o, verb)
	}
	return fmt.Sprintf("thru.to.%s.%s.%s", agent, o, verb)
}

// askSubject returns the subject of a user's request, which the controller judges.
func askSubject(agent string, o operatorID, verb string) string {
	if agent == tokenRegistry {
		return toSubject(agent, o, verb)
	}
	return fmt.Sprintf("thru.ask.%s.%s.%s", agent, o, verb)
}

func reSubject(o operatorID, agent, rest string) string {
	return fmt.Sprintf("thru.re.%s.%s.%s", o, agent, rest)
}

func aliveSubject(o operatorID) string     { return "thru.alive." + o.String() }
func hereSubject(agent string) string      { return "thru.here." + agent }
func rollSubject(key string) string        { return "thru.roll." + key }
func spoolSubject(agent, to string) string { return "thru.spool." + agent + "." + to }
func ackSubject(agent, rest string) string { return "thru.ack." + agent + "." + rest }

// operatorID identifies a connection of an operator.
type operatorID struct{ key, run string }

// String returns its two tokens in a subject.
func (o operatorID) String() string { return o.key + "." + o.run }

// client returns its id for handlers.
func (o operatorID) client() string { return o.key + "-" + o.run }

// operatorOf parses two tokens of a subject.
func operatorOf(key, run string) (operatorID, bool) {
	return operatorID{key, run}, validKey(key) && validID(run)
}

// operatorOfClient is the inverse of client.
func operatorOfClient(client string) (operatorID, bool) {
	key, run, _ := strings.Cut(client, "-")
	return operatorOf(key, run)
}

// hasRoom reports whether one more client of a key may be served, given the limits
// in total and for the key.
func hasRoom[L any](clients map[string]L, key string, most, ofKey int) bool {
	same := 0
	for client := range clients {
		if strings.HasPrefix(client, key+"-") {
			same++
		}
	}
	return len(clients) < most && same < ofKey
}

// tokens splits a subject into n tokens; nil where it has another number.
func tokens(subject string, n int) []string {
	t := strings.Split(subject, ".")
	if len(t) != n {
		return nil
	}
	return t
}

// allowed holds the subjects that one connection may publish and subscribe to.
type allowed struct{ publish, subscribe []string }

// agentMay returns the permissions of an agent: to answer, announce itself and deliver results.
func agentMay(key string) allowed {
	return allowed{
		publish:   []string{"thru.re.*.*." + key + ".>", hereSubject(key), spoolSubject(key, "*")},
		subscribe: []string{"thru.to." + key + ".>", hereSubject(key), ackSubject(key, ">"), "thru.alive.*.*", "thru.roll.*"},
	}
}

// memberMay returns the permissions of an agent at a hub. It must not subscribe to
// its own presence, since messages to itself that it does not read would fill the
// hub's memory; the registry tells it of another process with its key.
func memberMay(key string) allowed {
	may := agentMay(key)
	may.subscribe = slices.DeleteFunc(may.subscribe, func(s string) bool { return s == hereSubject(key) })
	return may
}

// operatorMay returns the permissions of an operator: to ask all agents, and receive its own replies.
func operatorMay(key string) allowed {
	return allowed{
		publish:   []string{"thru.to.*." + key + ".>", "thru.alive." + key + ".*", "thru.registry." + key + ".>"},
		subscribe: []string{"thru.re." + key + ".>"},
	}
}

// operatorShares returns the permissions of an operator of a NATS cluster: also to share runs.
func operatorShares(key string) allowed {
	may := operatorMay(key)
	may.publish = append(may.publish, runSubject+">", leaseSubject+">",
		"$JS.API.STREAM.INFO."+streamRuns, "$JS.API.STREAM.MSG.GET."+streamRuns, "$JS.API.STREAM.INFO."+streamLeases, "$JS.API.STREAM.MSG.GET."+streamLeases)
	return may
}

// controllerShares returns the permissions of a registry of a NATS cluster: also to share names.
func controllerShares(key string) allowed {
	may := controllerMay(key)
	may.publish = append(may.publish, nameSubject+">", "$JS.API.STREAM.CREATE."+streamNames, "$JS.API.STREAM.CREATE."+streamLeases,
		"$JS.API.STREAM.CREATE."+streamRuns, "$JS.API.STREAM.INFO."+streamNames, "$JS.API.STREAM.MSG.GET."+streamNames)
	may.subscribe = append(may.subscribe, "thru.re."+key+".>", ackSubject(key, wordHere), nameSubject+">")
	return may
}

// userMay returns the permissions of a user: as those of an operator, but the controller passes the requests on.
func userMay(key string) allowed {
	may := operatorMay(key)
	may.publish[0] = "thru.ask.*." + key + ".>"
	return may
}

// loginMay returns the permissions of a user that a provider has named: to ask for a token.
func loginMay(key string) allowed {
	may := operatorMay(key)
	may.publish = []string{toSubject(tokenRegistry, operatorID{key, "*"}, newSession.name)}
	return may
}

// controllerMay returns the permissions of a registry: to receive presence and results, and answer operators.
func controllerMay(key string) allowed {
	return allowed{
		publish:   []string{"thru.re.*.*." + tokenRegistry + ".>", rollSubject(key), "thru.ack.>"},
		subscribe: []string{"thru.here.*", "thru.alive.*.*", "thru.registry.>", "thru.spool.*." + tokenAny, "thru.spool.*." + key},
	}
}
