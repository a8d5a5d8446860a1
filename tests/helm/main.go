// Renders a Helm chart: go run . CHART < values.yaml
//
// Templates of Helm are those of text/template with the functions of sprig and include, required and toYaml. Charts
// here use no others, so that no cluster's libraries are needed to test them.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

type values = map[string]any

func main() {
	log.SetFlags(0)
	given, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = render(os.Args[1], given, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// render writes the documents of a chart with values over those of its own, in the order of the files.
func render(chart string, given []byte, out io.Writer) error {
	about, own, over := values{}, values{}, values{}
	if err := errors.Join(
		read(filepath.Join(chart, "Chart.yaml"), &about),
		read(filepath.Join(chart, "values.yaml"), &own),
		yaml.UnmarshalStrict(given, &over),
	); err != nil {
		return err
	}
	data := values{
		"Values":  merged(own, over),
		"Chart":   values{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release": values{"Name": "memories", "Namespace": "agents", "Service": "Helm"},
	}
	parsed := template.New("chart").Option("missingkey=zero")
	parsed.Funcs(sprig.TxtFuncMap()).Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var text strings.Builder
			err := parsed.ExecuteTemplate(&text, name, data)
			return text.String(), err
		},
		"toYaml": func(value any) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
	})
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	if _, err := parsed.ParseFiles(files...); err != nil {
		return err
	}
	for _, file := range files {
		var text bytes.Buffer
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		if err := parsed.ExecuteTemplate(&text, filepath.Base(file), data); err != nil {
			return err
		}
		if strings.TrimSpace(text.String()) != "" {
			fmt.Fprintf(out, "---\n%s\n", text.String())
		}
	}
	return nil
}

func read(path string, into *values) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}

// merged returns the own values with others in their place; maps are merged key by key, as Helm does.
func merged(own, over values) values {
	result := values{}
	for key, value := range own {
		result[key] = value
	}
	for key, value := range over {
		inner, both := value.(values)
		if outer, is := result[key].(values); is && both {
			value = merged(outer, inner)
		}
		result[key] = value
	}
	return result
}
