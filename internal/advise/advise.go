// Package advise turns what a diagnosis found, and what the gates say of the
// hosts, into an ordered list of changes to try: what binds first, each with its
// reason, the figure that it should bring, its risk, and the commands that do
// the same by hand, with those that undo them. It is pure: a document in, a list
// out, so that advice can be had from a stored result too.
package advise
