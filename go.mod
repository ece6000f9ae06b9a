module thru

go 1.26
